import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { crashEverywhere } from './crash-everywhere.ts'
import { runUntilCrash } from './crash-run.ts'

const CRASH_MODULE = JSON.stringify(new URL('./crash.ts', import.meta.url).href)

/** Reaches begin once and work as often as told, and leaves a trace of what it did in a file. */
const WORKER = `
  import { appendFileSync } from 'node:fs'
  import { type CrashPoint, reportPoints } from ${CRASH_MODULE}
  const crash: CrashPoint = reportPoints()
  const trace = (text: string) => appendFileSync(process.env.TRACE!, text)
  crash('begin')
  for (let i = 0; i < Number(process.argv[2] ?? 1); i++) {
    trace('<')
    crash('work')
    trace('>')
  }
  console.log('finished')
`

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'onlyonce-crash-'))
})
afterAll(() => rm(folder, { recursive: true }))

async function write(name: string, text: string): Promise<string> {
  const file = join(folder, name)
  await writeFile(file, text)
  return file
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

describe('runUntilCrash', () => {
  it('kills a TypeScript program at the site, and nothing after it runs', async () => {
    const program = await write('worker.ts', WORKER)
    const TRACE = join(folder, 'trace')
    const result = await runUntilCrash({ program, args: ['3'], env: { TRACE }, point: 'work', occurrence: 2 })
    expect(result).toMatchObject({ ended: 'killed', signal: 'SIGKILL', code: null, stdout: '' })
    expect(result.stderr).toContain('onlyonce-crashed-at: work#2')
    expect(await readFile(TRACE, 'utf8')).toBe('<><')
    expect(isAlive(result.pid)).toBe(false)
  })

  it('tells when a program exits without having reached the point', async () => {
    const program = pathToFileURL(
      await write('exits.mjs', 'console.log("out"); console.error("err"); process.exit(3)'),
    )
    const result = await runUntilCrash({ program, point: 'never' })
    expect(result).toMatchObject({ ended: 'exited', signal: null, code: 3, stdout: 'out\n', stderr: 'err\n' })
  })

  it('kills a program that takes too long, even one that ignores signals', async () => {
    const program = await write('hangs.mjs', 'process.on("SIGTERM", () => {}); setInterval(() => {}, 1e6)')
    const result = await runUntilCrash({ program, point: 'never', timeoutMs: 300 })
    expect(result).toMatchObject({ ended: 'timed_out', signal: 'SIGKILL' })
    expect(isAlive(result.pid)).toBe(false)
  })

  it('keeps the end of a long output', async () => {
    const program = await write('talks.mjs', 'process.stdout.write("x".repeat(5_000_000) + "the end")')
    const { stdout } = await runUntilCrash({ program, point: 'never' })
    expect(stdout).toHaveLength(1_048_576)
    expect(stdout.endsWith('the end')).toBe(true)
  })

  it('refuses what cannot be run', async () => {
    const program = join(folder, 'worker.ts')
    await expect(runUntilCrash({ program, point: '' })).rejects.toThrow(/crash site/)
    await expect(runUntilCrash({ program, point: 'x', timeoutMs: 0 })).rejects.toThrow(/timeoutMs/)
    await expect(runUntilCrash({ program, point: 'x', cwd: join(folder, 'none') })).rejects.toThrow(/ENOENT/)
  })
})

describe('crashEverywhere', () => {
  it('crashes at every occurrence of every point that the program reaches', async () => {
    const program = await write('everywhere.ts', WORKER)
    const traces: Record<string, string> = {}
    const table = await crashEverywhere({
      program,
      args: ['2'],
      points: ['begin', 'work'],
      runEnv: (site) => ({ TRACE: traceOf(site) }),
      afterEach: async (site) => {
        traces[nameOf(site)] = await readFile(traceOf(site), 'utf8').catch(() => 'none')
      },
    })
    expect(table.reached).toEqual([
      { point: 'begin', count: 1 },
      { point: 'work', count: 2 },
    ])
    expect(table.crashes.map(nameOf)).toEqual(['begin#1', 'work#1', 'work#2'])
    expect(traces).toEqual({ whole: '<><>', 'begin#1': 'none', 'work#1': '<', 'work#2': '<><' })
    for (const { result } of table.crashes) expect(isAlive(result.pid)).toBe(false)
  })

  function nameOf(site: { point: string; occurrence: number } | null): string {
    return site === null ? 'whole' : `${site.point}#${site.occurrence}`
  }
  function traceOf(site: { point: string; occurrence: number } | null): string {
    return join(folder, `trace-${nameOf(site)}`)
  }

  it('fails when a listed point is never reached', async () => {
    const program = await write('listed.ts', WORKER)
    const runEnv = { TRACE: join(folder, 'listed') }
    await expect(crashEverywhere({ program, runEnv, points: ['work', 'settled', 'paid'] })).rejects.toThrow(
      /never reaches settled, paid/,
    )
  })

  it('fails when a point that was reached is not reached again', async () => {
    const program = await write(
      'fickle.ts',
      `
      import { reportPoints } from ${CRASH_MODULE}
      const crash = reportPoints()
      if (process.env.ONLYONCE_CRASH_AT === undefined) crash('sometimes')
    `,
    )
    await expect(crashEverywhere({ program })).rejects.toThrow(
      /was to crash at sometimes#1, but it ended thus: exited/,
    )
  })

  it('does not take another kill for the crash', async () => {
    const program = await write(
      'killed.ts',
      `
      import { reportPoints } from ${CRASH_MODULE}
      const crash = reportPoints()
      if (process.env.ONLYONCE_CRASH_AT !== undefined) process.kill(process.pid, 'SIGKILL')
      else crash('work')
    `,
    )
    await expect(crashEverywhere({ program })).rejects.toThrow(
      /was to crash at work#1, but it ended thus: killed/,
    )
  })

  it('fails when the program fails, reports nothing or reaches nothing', async () => {
    const fails = await write('fails.mjs', 'throw new Error("broken program")')
    await expect(crashEverywhere({ program: fails })).rejects.toThrow(/broken program/)
    const silent = await write('silent.mjs', '')
    await expect(crashEverywhere({ program: silent })).rejects.toThrow(/did not report/)
    const idle = await write('idle.ts', `import { reportPoints } from ${CRASH_MODULE}\nreportPoints()`)
    await expect(crashEverywhere({ program: idle })).rejects.toThrow(/no crash point at all/)
  })

  it('passes on what the check after a run finds', async () => {
    const program = await write('checked.ts', WORKER)
    const afterEach = (site: unknown) => {
      if (site !== null) throw new Error('two transfers')
    }
    const runEnv = { TRACE: join(folder, 'checked') }
    await expect(crashEverywhere({ program, runEnv, afterEach })).rejects.toThrow('two transfers')
  })

  it('crashes at the first occurrences only, where told so', async () => {
    const program = await write('often.ts', WORKER)
    const runEnv = { TRACE: join(folder, 'often') }
    const table = await crashEverywhere({ program, args: ['5'], runEnv, occurrencesMax: 1 })
    expect(table.reached[1]).toEqual({ point: 'work', count: 5 })
    expect(table.crashes.map(nameOf)).toEqual(['begin#1', 'work#1'])
  })
})
