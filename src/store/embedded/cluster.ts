import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  chmod,
  chown,
  link,
  mkdir,
  mkdtemp,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { OnlyonceError } from '../../core/errors.ts'
import { type Account, chooseAccount } from './account.ts'
import { type Binaries, findBinaries } from './binaries.ts'
import { chownAll, exists, ignoreExisting, removeAbandoned, syncFolder } from './files.ts'
import { EMBEDDED_LIMITS } from './limits.ts'
import { makeFolder } from './make-folder.ts'

const run = promisify(execFile)
const DRAFT_PREFIX = 'initializing-'

/** The one role, a superuser of its own server. */
export const ROLE = 'onlyonce'

/** A folder with an initialized data folder in it, and what is needed to start a server there. */
export interface Cluster {
  readonly folder: string
  readonly data: string
  readonly logFile: string
  readonly password: string
  readonly binaries: Binaries
  readonly account: Account | undefined
}

/**
 * Opens a folder: one that was used before with its data, a new one after initializing it.
 *
 * Nothing is locked. The password file appears by link() and the data folder by rename(), each whole or not at
 * all, so of two processes at once one wins and the other finds its work done.
 *
 * @example
 * const cluster = await openCluster('./data', { durable: true })
 */
export async function openCluster(
  path: string,
  options: { binaries?: string | undefined; durable: boolean },
): Promise<Cluster> {
  await makeFolder(path)
  const folder = await realpath(path)
  const lent = await chooseAccount()
  // The server's user must pass through; what is in the folder keeps its own modes.
  if (lent !== undefined) await chmod(folder, ((await stat(folder)).mode & 0o7777) | 0o011)
  const data = join(folder, 'data')
  const account = lent && ((await readOwner(data)) ?? lent)
  const binaries = await findBinaries(options.binaries, account)
  const initialized = await exists(join(data, 'PG_VERSION'))
  const password = await keepPassword(folder, initialized)
  const cluster = { folder, data, logFile: join(folder, 'server.log'), password, binaries, account }
  if (!initialized) await initialize(cluster, options.durable)
  // Data that root copied here, from a backup for example.
  else if (account !== undefined && (await stat(data)).uid === 0) await chownAll(data, account)
  return cluster
}

/** The user that owns the data goes on with them; they may be from before this process ran as root. */
async function readOwner(data: string): Promise<Account | undefined> {
  const found = await stat(data).catch(() => undefined)
  return found === undefined || found.uid === 0 ? undefined : { uid: found.uid, gid: found.gid }
}

async function keepPassword(folder: string, initialized: boolean): Promise<string> {
  const file = join(folder, 'password')
  if (!(await exists(file))) {
    // The password is always there before the data are; a new one would not open them.
    if (initialized) throw new OnlyonceError('option_invalid', { detail: `${file} is missing. Restore it.` })
    const draft = join(folder, `password.${randomBytes(6).toString('hex')}`)
    await writeFile(draft, randomBytes(24).toString('base64url'), { mode: 0o600, flag: 'wx', flush: true })
    await link(draft, file).catch(ignoreExisting)
    await rm(draft)
  }
  return (await readFile(file, 'utf8')).trim()
}

async function initialize(cluster: Cluster, durable: boolean): Promise<void> {
  await removeAbandoned(cluster.folder, DRAFT_PREFIX, EMBEDDED_LIMITS.abandonedAfterMs)
  const draft = await mkdtemp(join(cluster.folder, DRAFT_PREFIX))
  try {
    const passwordFile = join(draft, 'password')
    await writeFile(passwordFile, cluster.password, { mode: 0o600 })
    await mkdir(join(draft, 'data'), { mode: 0o700 })
    if (cluster.account !== undefined) {
      const { uid, gid } = cluster.account
      for (const path of [draft, passwordFile, join(draft, 'data')]) await chown(path, uid, gid)
    }
    await runInitdb(cluster, draft, durable)
    await rename(join(draft, 'data'), cluster.data).catch(ignoreExisting)
    if (durable) await syncFolder(cluster.folder)
  } finally {
    await rm(draft, { recursive: true, force: true })
  }
}

async function runInitdb(cluster: Cluster, draft: string, durable: boolean): Promise<void> {
  const args = [
    `--pgdata=${join(draft, 'data')}`,
    `--username=${ROLE}`,
    `--pwfile=${join(draft, 'password')}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    '--locale=C',
    '--data-checksums',
    ...(durable ? [] : ['--no-sync']),
  ]
  try {
    await run(cluster.binaries.initdb, args, {
      ...cluster.account,
      cwd: draft,
      env: serverEnvironment(),
      timeout: EMBEDDED_LIMITS.initdbMaxMs,
    })
  } catch (cause) {
    throw new OnlyonceError('store_unavailable', { detail: explainInitdb(cluster, cause), cause })
  }
}

function explainInitdb(cluster: Cluster, cause: unknown): string {
  const { code, stderr } = cause as { code?: string | number; stderr?: string }
  if (code === 'EACCES' || stderr?.includes('Permission denied')) return explainUnreachable(cluster)
  const tail = (stderr ?? String(cause)).trim().slice(-EMBEDDED_LIMITS.logTailLengthMax)
  return `initdb failed in ${cluster.folder}: ${tail}`
}

/**
 * The sentence for a folder below one that the server's user may not enter.
 *
 * @example
 * throw new OnlyonceError('store_unavailable', { detail: explainUnreachable(cluster) })
 */
export function explainUnreachable(cluster: Cluster): string {
  const who =
    cluster.account === undefined
      ? 'this user'
      : `the user with id ${cluster.account.uid}, which the server runs as,`
  return `${cluster.folder} cannot be entered by ${who}: a folder above it is closed. Choose another folder or open that one.`
}

/**
 * What the server learns from our environment: next to nothing. Ours may hold secrets that are none of its
 * business, or PG* variables that mean another server.
 *
 * @example
 * spawn(postgres, args, { env: serverEnvironment() })
 */
export function serverEnvironment(): NodeJS.ProcessEnv {
  const { PATH, LD_LIBRARY_PATH } = process.env
  return { PATH, LC_ALL: 'C', TZ: 'UTC', ...(LD_LIBRARY_PATH === undefined ? {} : { LD_LIBRARY_PATH }) }
}
