import type { CutAtCommit, ServerCloses } from './faults.ts'
import type { CommitPiece } from './frontend-reader.ts'
import type { Random } from './random.ts'

/** How one COMMIT is cut off: `bytes` are forwarded to the server, nothing after them. */
export type Cut =
  | { readonly when: 'before' | 'within'; readonly bytes: Buffer; readonly server_closes: null }
  | { readonly when: 'after'; readonly bytes: Buffer; readonly server_closes: ServerCloses }

const CUTS = ['before', 'after', 'within'] as const
const SERVER_CLOSES = ['at_once', 'after_answer'] as const

/** Chooses by the seed where the fault leaves a choice. */
export function chooseCut(fault: CutAtCommit, piece: CommitPiece, random: Random): Cut {
  const when = fault.when === 'random' ? random.pick(CUTS) : fault.when
  const start = fault.from === 'batch' ? 0 : piece.commit_at
  switch (when) {
    case 'before':
      return { when, bytes: piece.bytes.subarray(0, start), server_closes: null }
    case 'within': {
      // At least one byte goes through and at least one does not.
      const part_bytes = 1 + random.integer(piece.bytes.length - start - 1)
      return { when, bytes: piece.bytes.subarray(0, start + part_bytes), server_closes: null }
    }
    case 'after': {
      const chosen = fault.server_closes ?? 'random'
      return {
        when,
        bytes: piece.bytes,
        server_closes: chosen === 'random' ? random.pick(SERVER_CLOSES) : chosen,
      }
    }
    default:
      throw new TypeError(when satisfies never)
  }
}
