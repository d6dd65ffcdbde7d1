import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { OnlyonceError } from '../../core/errors.ts'
import { EMBEDDED_LIMITS } from './limits.ts'

const run = promisify(execFile)

/** The system user that the server runs as. */
export interface Account {
  readonly uid: number
  readonly gid: number
}

/**
 * PostgreSQL refuses to run as root, so root lends it an unprivileged user: `postgres`, else `nobody`. Where
 * neither exists, `postgres` is created. Undefined means: run as the user that we are.
 *
 * @example
 * const account = await chooseAccount()
 * spawn(postgres, args, { ...account })
 */
export async function chooseAccount(): Promise<Account | undefined> {
  if (process.getuid?.() !== 0) return undefined
  return (await findAccount('postgres')) ?? (await findAccount('nobody')) ?? (await createAccount())
}

async function findAccount(name: string): Promise<Account | undefined> {
  try {
    // `id` asks every directory that the system knows; /etc/passwd would be only one of them.
    const [uid, gid] = await Promise.all([readId('-u', name), readId('-g', name)])
    return uid > 0 ? { uid, gid } : undefined
  } catch {
    return undefined
  }
}

async function readId(flag: '-u' | '-g', name: string): Promise<number> {
  const { stdout } = await run('id', [flag, name], { timeout: EMBEDDED_LIMITS.probeMaxMs })
  return Number.parseInt(stdout, 10)
}

async function createAccount(): Promise<Account> {
  let cause: unknown
  try {
    await run(
      'useradd',
      ['--system', '--user-group', '--no-create-home', '--shell', '/bin/false', 'postgres'],
      {
        timeout: EMBEDDED_LIMITS.probeMaxMs,
      },
    )
  } catch (error) {
    // Another process may have created it in the meantime; looking tells.
    cause = error
  }
  const account = await findAccount('postgres')
  if (account !== undefined) return account
  throw new OnlyonceError('option_invalid', {
    detail: 'PostgreSQL does not run as root. Create a user "postgres", or run this process as another user.',
    cause,
  })
}
