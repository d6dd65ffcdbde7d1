/** What is told when a start has failed. */
import { ConfigError } from './config.ts'
import { NotReached } from './database/reach.ts'

/** Of PostgreSQL: a write in a transaction that only reads. */
const READ_ONLY = '25006'
const ONLY_READS =
  'The database can only be read, as a standby can. Set DATABASE_URL to one that can be written; without DEMO_ACCOUNT a start on tables that are up to date writes nothing.'

/** What people can mend is told in a line; the rest with all that is known of it. */
export function explain(error: unknown): unknown {
  if (error instanceof ConfigError || error instanceof NotReached) return error.message
  const { code, syscall, address, port } = error as NodeJS.ErrnoException & {
    address?: string
    port?: number
  }
  if (code === READ_ONLY) return ONLY_READS
  if (syscall !== 'listen') return error
  const place = `${address}${port === undefined ? '' : `:${port}`}`
  if (code === 'EADDRINUSE')
    return `${place} is in use by another process. Set PORT to another one, or stop that process.`
  if (code === 'EACCES') return `${place} may not be used by this user. Set PORT to 1024 or more.`
  if (code === 'EADDRNOTAVAIL') return `${address} is no address of this machine. Set HOST to one.`
  return error
}
