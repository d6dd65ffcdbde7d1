import { type Erased, eraseAll, erasureScope } from '../../operator/erase.ts'
import { countToErase, type ErasureCount, type ErasureScope } from '../../store/postgres/erasure.ts'
import { type Call, type Command, SIGNED, YES } from '../command.ts'
import { EXIT } from '../exit.ts'
import { confirm } from '../io.ts'
import { withOnce } from '../open.ts'
import { Progress } from '../progress.ts'
import { signatureOf } from './decide.ts'

export const ERASE: Command = {
  name: 'erase',
  summary: 'Erases what an account has stored. Its keys stay used: none of them ever runs again.',
  takes: [],
  about: [
    'Replies, inputs, results of steps, fingerprints, errors and the history of attempts are gone for good, and with the whole account also evidence, webhooks and done jobs. A tombstone is left under each key: a retry is told `key_erased` (410), and runs nothing. Each erasure stands in the audit, which is never erased.',
    'What is in progress, unknown or parked is left, because nothing but its record can tell what became of it; so is a retryable operation with durable steps, until its retention ends. Settle those, and run this again: the exit code is 1 as long as something is left.',
    'Close the account first: what is written while this runs may be missed. A process may replay a reply that it has replayed a moment ago for some ten seconds more.',
  ],
  options: [
    { name: 'account', value: '<account>', text: 'Whose records. Required.' },
    { name: 'operation', value: '<name>', text: 'Only records of this operation.' },
    { name: 'key', value: '<key>', text: 'Only records of this key.' },
    { name: 'dry-run', text: 'Only count what would be erased, and what would be left.' },
    ...SIGNED.filter(({ name }) => name !== 'fence'),
    YES,
  ],
  examples: [
    'onlyonce erase --account acct_1 --dry-run',
    `onlyonce erase --account acct_1 --actor ann --reason 'request 4711 of the customer'`,
  ],
  async run(call) {
    const { values, output } = call
    const scope = erasureScope(values.required('account'), values.text('operation'), values.text('key'))
    const signed = values.has('dry-run') ? null : signatureOf(call)
    return await withOnce(call, async ({ once, pool, schema }) => {
      await once.start()
      const before = await countToErase(pool, schema, scope)
      if (signed === null) {
        output.print(
          { dryRun: true, ...before },
          () => `${before.erasable} records would be erased. ${leftOf(before)}\n`,
        )
        return EXIT.ok
      }
      const erased = await erase(call, { pool, schema, scope, ...signed }, before)
      output.print(erased, () => forPeople(erased))
      return leftCount(erased.left) === 0 ? EXIT.ok : EXIT.found
    })
  },
}

async function erase(
  { io, output, values }: Call,
  request: Pick<Parameters<typeof eraseAll>[0], 'pool' | 'schema' | 'by' | 'why'> & {
    readonly scope: ErasureScope
  },
  before: ErasureCount,
): Promise<Erased> {
  const { account } = request.scope
  await confirm(io, values.has('yes'), `${before.erasable} records of ${account} are erased for good.`)
  const progress = new Progress(output, 'erasing', before.erasable)
  const erased = await eraseAll({ ...request, signal: io.signal, onProgress: (count) => progress.add(count) })
  progress.end()
  return erased
}

function leftCount({ inProgress, unknown, parked, retryable, erasable }: ErasureCount): number {
  return inProgress + unknown + parked + retryable + erasable
}

function leftOf({ inProgress, unknown, parked, retryable }: ErasureCount): string {
  const counts = { 'in progress': inProgress, unknown, parked, 'retryable with durable steps': retryable }
  const left = Object.entries(counts).filter(([, count]) => count > 0)
  if (left.length === 0) return 'None is left.'
  return `Left, because they are not finished: ${left.map(([state, count]) => `${count} ${state}`).join(', ')}.`
}

function forPeople({ erased, removed, left, beside }: Erased): string {
  const lines = [`${erased} records were erased, and ${removed} other rows removed. ${leftOf(left)}`]
  if (left.erasable > 0)
    lines.push(`${left.erasable} were written meanwhile, or were not reached. Run this again.`)
  const others = Object.entries(beside ?? {}).filter(([, count]) => count > 0)
  if (others.length > 0) {
    const counts = others.map(
      ([what, count]) => `${count} ${what.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)}`,
    )
    lines.push(
      `Still there, because they are on their way: ${counts.join(', ')}. The relay removes events after they were delivered; run this again then.`,
    )
  }
  return `${lines.join('\n')}\n`
}
