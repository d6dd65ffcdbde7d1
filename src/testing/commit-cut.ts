import type { CutAtCommit, ServerCloses } from './faults.ts'
import type { CommitPiece } from './frontend-reader.ts'
import type { Random } from './random.ts'

/** How one COMMIT is cut off: `bytes` are forwarded to the server, nothing after them. */
export type Cut =
  | { readonly when: 'before' | 'within'; readonly bytes: Buffer; readonly serverCloses: null }
  | { readonly when: 'after'; readonly bytes: Buffer; readonly serverCloses: ServerCloses }

const CUTS = ['before', 'after', 'within'] as const
const SERVER_CLOSES = ['at_once', 'after_answer'] as const

/** Chooses by the seed where the fault leaves a choice. */
export function chooseCut(fault: CutAtCommit, piece: CommitPiece, random: Random): Cut {
  const when = fault.when === 'random' ? random.pick(CUTS) : fault.when
  const start = fault.from === 'batch' ? 0 : piece.commitAt
  switch (when) {
    case 'before':
      return { when, bytes: piece.bytes.subarray(0, start), serverCloses: null }
    case 'within': {
      // At least one byte goes through and at least one does not.
      const partBytes = 1 + random.integer(piece.bytes.length - start - 1)
      return { when, bytes: piece.bytes.subarray(0, start + partBytes), serverCloses: null }
    }
    case 'after': {
      const chosen = fault.serverCloses ?? 'random'
      return {
        when,
        bytes: piece.bytes,
        serverCloses: chosen === 'random' ? random.pick(SERVER_CLOSES) : chosen,
      }
    }
    default:
      throw new TypeError(when satisfies never)
  }
}
