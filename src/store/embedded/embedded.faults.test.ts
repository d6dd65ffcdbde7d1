import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { withClient } from '../../../test/setup/client.ts'
import { type EmbeddedOptions, startEmbeddedPostgres } from './index.ts'
import { processExists } from './process.ts'

const run = promisify(execFile)
const isRoot = process.getuid?.() === 0

async function tempFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'onlyonce-embedded-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

async function start(options: EmbeddedOptions) {
  const server = await startEmbeddedPostgres(options)
  onTestFinished(() => server.stop())
  return server
}

async function read(url: string, text: string): Promise<unknown> {
  return withClient(url, async (client) => Object.values((await client.query(text)).rows[0] ?? {})[0])
}

/** Starts a server in another process, which then ends as told; answers what that process printed. */
async function startElsewhere(
  folder: string,
  ending: 'exit' | 'SIGKILL',
): Promise<{ pid: number; url: string }> {
  const code = `
    import { startEmbeddedPostgres } from ${JSON.stringify(new URL('./index.ts', import.meta.url).href)}
    const server = await startEmbeddedPostgres({ folder: ${JSON.stringify(folder)} })
    const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'].flatMap((signal) => process.listeners(signal))
    if (signals.length > 0) throw new Error('signal handlers were installed')
    process.stdout.write(JSON.stringify({ pid: server.pid, url: server.url }), () => {
      if (${JSON.stringify(ending)} === 'SIGKILL') process.kill(process.pid, 'SIGKILL')
    })`
  const args = ['--import', 'tsx', '--input-type=module', '--eval', code]
  const { stdout } = await run(process.execPath, args).catch((error) => {
    if (error.signal === 'SIGKILL') return error as { stdout: string }
    throw error
  })
  return JSON.parse(stdout)
}

describe('a server in a folder', () => {
  test('keeps what was committed when it is killed', async () => {
    const folder = await tempFolder()
    const first = await start({ folder })
    await withClient(first.url, async (client) => {
      await client.query('CREATE TABLE note (text text)')
      await client.query("INSERT INTO note VALUES ('kept')")
    })
    await first.kill()
    expect(processExists(first.pid)).toBe(false)
    const second = await start({ folder })
    expect(await read(second.url, 'SELECT text FROM note')).toBe('kept')
    expect(await read(second.url, 'SHOW fsync')).toBe('on')
  })

  test('comes back at the same address after kill and restart', async () => {
    const server = await start({ folder: await tempFolder() })
    const { pid, url } = server
    await server.kill()
    await server.restart()
    expect(server.url).toBe(url)
    expect(server.pid).not.toBe(pid)
    expect(await read(url, 'SELECT 1')).toBe(1)
    await server.restart()
    expect(await read(url, 'SELECT 2')).toBe(2)
  })

  test('does not try for ever to make a folder where none can be made', async () => {
    for (const folder of ['/proc/x', '/proc/x/below']) {
      await expect(startEmbeddedPostgres({ folder })).rejects.toMatchObject({ syscall: 'mkdir' })
    }
  })

  test('is reached on loopback alone, with a password that only its owner can read', async () => {
    const server = await start({ folder: await tempFolder() })
    expect(await read(server.url, 'SHOW listen_addresses')).toBe('127.0.0.1')
    expect(await read(server.url, 'SHOW unix_socket_directories')).toBe('')
    expect(await read(server.url, 'SHOW server_encoding')).toBe('UTF8')
    expect(await read(server.url, "SELECT datcollate FROM pg_database WHERE datname = 'postgres'")).toBe('C')
    expect((await stat(join(server.folder, 'password'))).mode & 0o777).toBe(0o600)
    const guess = new URL(server.url)
    guess.password = 'guess'
    await expect(read(guess.href, 'SELECT 1')).rejects.toMatchObject({ code: '28P01' })
  })

  test('takes the port and the settings that it is given', async () => {
    const folder = await tempFolder()
    const other = await start({ folder: await tempFolder() })
    await other.stop()
    const server = await start({ folder, port: other.port, settings: { max_connections: '17' } })
    expect(server.port).toBe(other.port)
    expect(await read(server.url, 'SHOW max_connections')).toBe('17')
    const elsewhere = startEmbeddedPostgres({ folder: await tempFolder(), port: server.port })
    await expect(elsewhere).rejects.toThrow(/Address already in use/)
  })

  test.runIf(isRoot)('runs as an unprivileged user when this process is root', async () => {
    const server = await start({ folder: await tempFolder() })
    expect((await stat(join(server.folder, 'data'))).uid).not.toBe(0)
    expect((await stat(`/proc/${server.pid}`)).uid).not.toBe(0)
  })

  test.each(['a lock file of another process', 'an empty lock file'])(
    'starts in spite of %s',
    async (kind) => {
      const folder = await tempFolder()
      const server = await start({ folder })
      await server.kill()
      const file = join(folder, 'data', 'postmaster.pid')
      const lines = (await readFile(file, 'utf8')).split('\n')
      // As after a container's restart: the number is in use, by somebody else.
      const text = [process.pid, ...lines.slice(1)].join('\n')
      await writeFile(file, kind === 'an empty lock file' ? '' : text)
      await server.restart()
      expect(await read(server.url, 'SELECT 1')).toBe(1)
    },
  )
})

describe('a server that runs already', () => {
  test('is adopted when its owner was killed, and stops with the new owner', async () => {
    const folder = await tempFolder()
    const orphan = await startElsewhere(folder, 'SIGKILL')
    expect(processExists(orphan.pid)).toBe(true)
    const server = await start({ folder })
    expect(server.pid).toBe(orphan.pid)
    expect(server.url).toBe(orphan.url)
    await server.stop()
    expect(processExists(orphan.pid)).toBe(false)
  })

  test('is replaced when its owner was killed and other settings are wanted', async () => {
    const folder = await tempFolder()
    const orphan = await startElsewhere(folder, 'SIGKILL')
    const server = await start({ folder, settings: { max_connections: '17' } })
    expect(server.pid).not.toBe(orphan.pid)
    expect(await read(server.url, 'SHOW max_connections')).toBe('17')
  })

  test('is refused with other settings while its owner lives', async () => {
    const folder = await tempFolder()
    await start({ folder })
    const other = startEmbeddedPostgres({ folder, settings: { max_connections: '17' } })
    await expect(other).rejects.toThrow(/other settings and belongs to process/)
  })

  test('stops when its owner exits without stopping it', async () => {
    const folder = await tempFolder()
    const { pid } = await startElsewhere(folder, 'exit')
    await expect.poll(() => processExists(pid), { timeout: 10_000 }).toBe(false)
  })

  test('goes on when a process that only adopted it exits', async () => {
    const folder = await tempFolder()
    const server = await start({ folder })
    expect((await startElsewhere(folder, 'exit')).pid).toBe(server.pid)
    expect(await read(server.url, 'SELECT 1')).toBe(1)
  })

  test('is shared by all who start at once, in one process and in several', async () => {
    const folder = await tempFolder()
    const starts = [start({ folder }), start({ folder }), startElsewhere(folder, 'SIGKILL')]
    const servers = await Promise.all(starts)
    expect(new Set(servers.map((server) => server.url)).size).toBe(1)
    const again = await start({ folder })
    expect(again.pid).toBe(servers[0]?.pid)
    await again.stop()
    expect(processExists(again.pid)).toBe(false)
  })
})

describe('what cannot work is refused', () => {
  test.each([
    [{ folder: '' }, /folder/],
    [{ folder: 'x', port: 0 }, /port/],
    [{ folder: 'x', settings: { listen_addresses: '*' } }, /listen_addresses/],
    [{ folder: 'x', settings: { 'bad name': '1' } }, /bad name/],
  ] as Array<[EmbeddedOptions, RegExp]>)('%j', async (options, words) => {
    const refused = startEmbeddedPostgres(options)
    await expect(refused).rejects.toMatchObject({
      code: 'option_invalid',
      message: expect.stringMatching(words),
    })
  })

  test('a folder without the programs', async () => {
    const folder = await tempFolder()
    const binaries = join(folder, 'empty')
    await mkdir(binaries)
    await expect(startEmbeddedPostgres({ folder, binaries })).rejects.toMatchObject({
      code: 'option_invalid',
      message: expect.stringContaining('initdb and postgres'),
    })
  })

  test('data whose password was lost or changed', async () => {
    const folder = await tempFolder()
    await (await start({ folder })).stop()
    await writeFile(join(folder, 'password'), 'another')
    await expect(startEmbeddedPostgres({ folder })).rejects.toThrow(/refuses the password/)
    expect(existsSync(join(folder, 'data', 'postmaster.pid'))).toBe(false)
    await rm(join(folder, 'password'))
    await expect(startEmbeddedPostgres({ folder })).rejects.toThrow(/password is missing/)
  })

  test.runIf(isRoot)("a folder that the server's user cannot enter", async () => {
    const closed = await tempFolder()
    const started = startEmbeddedPostgres({ folder: join(closed, 'data') })
    await expect(started).rejects.toThrow(/a folder above it is closed/)
  })

  test('a setting that the server does not know, with its log', async () => {
    const started = startEmbeddedPostgres({ folder: await tempFolder(), settings: { no_such_setting: '1' } })
    await expect(started).rejects.toThrow(/unrecognized configuration parameter "no_such_setting"/)
  })
})
