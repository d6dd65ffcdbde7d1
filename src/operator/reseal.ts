/** Seals what is stored with the current key, so that an old one is needed no longer. */
import type { Pool } from 'pg'
import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { type KeyRing, keyUnknown } from '../core/ring.ts'
import { isErased } from '../record/value.ts'
import { Seal } from '../seal/index.ts'
import {
  putSealed,
  readSealedPage,
  SEALED_TABLES,
  type SealedItem,
  type SealedPage,
  type Shelf,
} from '../store/postgres/rotation.ts'

export interface ResealRequest {
  readonly pool: Pool
  readonly schema: string
  readonly ring: KeyRing
  /** What was stored in the clear too. */
  readonly plain: boolean
  readonly signal: AbortSignal
  /** Told after each page how many were gone through that had to be sealed anew. */
  readonly onProgress: (count: number) => void
}

export interface Resealed {
  readonly resealed: number
  /** Of unfinished operations that an owner works on; the owner clears them when it ends. */
  readonly owned: number
  /** Changed or held by another process in that moment: another run finds them. */
  readonly changed: number
  /** Sealed with a key that the ring lacks, by its id. */
  readonly missing: Readonly<Record<string, number>>
  /** Seals that do not open: what was sealed is lost, whatever key there is. The first of them by name. */
  readonly broken: number
  readonly brokenNames: readonly string[]
}

/**
 * Goes through all that is sealed, in bounded pages, each of them a commit. Nothing is lost where it ends in the middle: what is left
 * names its old key, and another run goes on. Every new seal is opened once before it is written.
 *
 * @example
 * const { resealed } = await resealAll({ pool, schema: 'onlyonce', ring, plain: false, signal, onProgress: () => {} })
 */
export async function resealAll(request: ResealRequest): Promise<Resealed> {
  const tally = new Tally()
  const seal = new Seal(request.ring)
  for (const table of SEALED_TABLES) {
    let after: SealedPage['after'] = null
    do {
      if (request.signal.aborted) return tally.told()
      const { schema, plain, ring, pool } = request
      const page: SealedPage = await readSealedPage(pool, {
        schema,
        table,
        after,
        plain,
        currentId: ring.currentId,
      })
      await resealPage(request, seal, page, tally)
      request.onProgress(page.items.length)
      after = page.after
    } while (after !== null)
  }
  return tally.told()
}

async function resealPage(
  { pool, schema, ring }: ResealRequest,
  seal: Seal,
  page: SealedPage,
  tally: Tally,
): Promise<void> {
  tally.owned += page.owned
  const shelves = new Map<Shelf, { item: SealedItem; bytes: Buffer }[]>()
  for (const { shelf, item } of page.items) {
    // A tombstone holds nothing that could be sealed.
    if (item.kind === 'reply' && isErased(item.reply)) continue
    const bytes = tally.tried(item, () => resealOne(seal, item))
    if (bytes !== null) shelves.set(shelf, [...(shelves.get(shelf) ?? []), { item, bytes }])
  }
  for (const [shelf, sealed] of shelves) {
    const put = await putSealed(pool, schema, shelf, ring.currentId, sealed)
    tally.resealed += put
    tally.changed += sealed.length - put
  }
}

function resealOne(seal: Seal, item: SealedItem): Buffer {
  if (item.kind === 'reply') {
    const plain = seal.openReply(item.of, item.reply)
    const sealed = seal.sealReply(item.of, plain)
    const again = seal.openReply(item.of, sealed)
    same(plain.body ?? NOT_KEPT, again.body ?? NOT_KEPT)
    same(Buffer.from(JSON.stringify(plain.headers)), Buffer.from(JSON.stringify(again.headers)))
    return sealed.body!
  }
  const plain = seal.open(item.place, item)
  const sealed = seal.seal(item.place, plain)
  same(plain, seal.open(item.place, sealed))
  return sealed.bytes
}

const NOT_KEPT = Buffer.from('not kept')

/** What cannot be: but a reply that was sealed wrongly would be lost when its old key is. */
function same(plain: Buffer, again: Buffer): void {
  if (!plain.equals(again)) throw new OnlyonceError('seal_broken')
}

class Tally {
  resealed = 0
  owned = 0
  changed = 0
  #broken = 0
  readonly #brokenNames: string[] = []
  readonly #missing = new Map<string, number>()

  /** Null where it cannot be opened, which is noted. */
  tried(item: SealedItem, work: () => Buffer): Buffer | null {
    try {
      return work()
    } catch (error) {
      if (!(error instanceof OnlyonceError)) throw error
      const sealedBy = item.kind === 'reply' ? item.reply.sealedBy : item.sealedBy
      if (error.code === keyUnknown('reply', '').code) {
        this.#missing.set(sealedBy ?? '', (this.#missing.get(sealedBy ?? '') ?? 0) + 1)
      } else {
        this.#broken += 1
        if (this.#brokenNames.length < LIMITS.nearNamesMax) this.#brokenNames.push(item.name)
      }
      return null
    }
  }

  told(): Resealed {
    const { resealed, owned, changed } = this
    const missing = Object.fromEntries(this.#missing)
    return { resealed, owned, changed, missing, broken: this.#broken, brokenNames: this.#brokenNames }
  }
}
