/** The command line in this process, with streams of its own. */
import { Readable, Writable } from 'node:stream'
import type { Io } from '../../src/cli/io.ts'
import { main } from '../../src/cli/main.ts'

export interface Ran {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
  /** What was printed with --json. */
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into whatever was printed.
  readonly json: any
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>
  /** What is typed, or piped into it. */
  readonly stdin?: string
  /** Both ends are a terminal. */
  readonly terminal?: boolean
  readonly signal?: AbortSignal
}

/** Runs a command as the process would, and gives back all that it said. */
export async function run(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const said = { stdout: '', stderr: '' }
  const into = (name: keyof typeof said) =>
    new Writable({
      write(part, _, done) {
        said[name] += String(part)
        done()
      },
    })
  const isTTY = options.terminal === true
  const io: Io = {
    stdin: Object.assign(Readable.from(options.stdin === undefined ? [] : [options.stdin]), { isTTY }),
    stdout: into('stdout'),
    stderr: Object.assign(into('stderr'), { isTTY }),
    env: options.env ?? {},
    signal: options.signal ?? new AbortController().signal,
  }
  const code = await main(args, io)
  const json = args.includes('--json') && said.stdout !== '' ? JSON.parse(said.stdout) : null
  return { code, ...said, json }
}
