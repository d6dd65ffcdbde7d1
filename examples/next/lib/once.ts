/** In a project of your own, import from 'onlyonce' instead of from src/. */
import { type Onlyonce, onlyonce } from '../../../src/index.ts'
import { type PostgresTx, postgres } from '../../../src/store/postgres/index.ts'

// Next.js loads modules again when they change during development; connections would pile up.
const kept = globalThis as { once?: Onlyonce<PostgresTx> }

kept.once ??= onlyonce({
  store: postgres({ connectionString: process.env.DATABASE_URL ?? '' }),
  secret: process.env.ONLYONCE_SECRET,
})

export const once = kept.once
