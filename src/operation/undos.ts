import type { Reply } from '../record/index.ts'
import type { Queryable } from '../store/contract.ts'
import type { CallStep } from './operation.ts'
import { type Entry, entryOf, resultOf } from './steps.ts'
import { changed, type Stop } from './stop.ts'

/** How to undo one step. */
export interface Undo {
  readonly name: string
  readonly undo: CallStep<unknown> | ((tx: Queryable) => Promise<unknown>)
}

/** What is still to be undone. They are done in reverse, so what is done has to be the first of them. */
export function undosLeft(undos: readonly Undo[], done: readonly Entry[]): readonly Undo[] | Stop {
  const reversed = undos.toReversed()
  const amiss = done.find(({ name }, i) => reversed[i]?.name !== name)
  if (amiss === undefined) return reversed.slice(done.length)
  return changed(`The undo ${amiss.name} is done, and the code has another in its place.`)
}

/** The entry that begins the undoing holds the reply for when all is undone. */
export function undoingOf({ status, headers, schema, body }: Reply): Entry {
  return entryOf('undo', 'undoing', { status, headers, schema, body: body!.toString('utf8') })
}

export function replyOfUndoing(undoing: Entry): Reply {
  const { body, ...rest } = resultOf(undoing) as Omit<Reply, 'body' | 'sealedBy'> & { body: string }
  return { ...rest, body: Buffer.from(body), sealedBy: null }
}
