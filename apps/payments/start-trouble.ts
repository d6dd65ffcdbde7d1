/** What is told when a start has failed. */
import { OnlyonceError } from 'onlyonce'
import { ConfigError } from './config.ts'
import { FolderUnusable } from './data-folder.ts'
import { NotReached } from './database/reach.ts'

/** Of a path that is no folder, or that this user may not use. */
const FILE_TROUBLE: ReadonlySet<string> = new Set(['ENOTDIR', 'EACCES', 'EPERM', 'EROFS', 'ENOSPC', 'EISDIR'])
/** Of PostgreSQL: a write in a transaction that only reads. */
const READ_ONLY = '25006'
const ONLY_READS =
  'The database can only be read, as a standby can. Set DATABASE_URL to one that can be written; without DEMO_ACCOUNT a start on tables that are up to date writes nothing.'

/** What people can mend is told in a line; the rest with all that is known of it. */
export function explain(error: unknown): unknown {
  if (error instanceof ConfigError || error instanceof NotReached || error instanceof FolderUnusable)
    return error.message
  // Its sentences are made for operators: a password that is wrong, a key that is missing.
  if (error instanceof OnlyonceError) return `${error.message} (${error.code})`.replaceAll(/\s+/g, ' ')
  const { code, syscall, address, port, path } = error as NodeJS.ErrnoException & {
    address?: string
    port?: number
  }
  if (code === READ_ONLY) return ONLY_READS
  if (path !== undefined && syscall !== 'listen' && FILE_TROUBLE.has(`${code}`))
    return `${path} cannot be used (${code}). Set DATA_FOLDER to a folder that this user may write.`
  if (syscall !== 'listen') return error
  const place = `${address}${port === undefined ? '' : `:${port}`}`
  if (code === 'EADDRINUSE')
    return `${place} is in use by another process. Set PORT to another one, or stop that process.`
  if (code === 'EACCES') return `${place} may not be used by this user. Set PORT to 1024 or more.`
  if (code === 'EADDRNOTAVAIL') return `${address} is no address of this machine. Set HOST to one.`
  return error
}
