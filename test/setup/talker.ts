import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { cleanUpLater } from './clean-up.ts'
import { compiled } from './compiled.ts'

/** A program of ours in a process of its own, which speaks and hears in lines. */
export class Talker {
  readonly #child: ChildProcess
  readonly #lines: AsyncIterator<string>

  constructor(program: URL, env: Record<string, string>) {
    this.#child = spawn(process.execPath, [compiled(program)], {
      env: { ...process.env, ...env },
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    this.#lines = createInterface({ input: this.#child.stdout! })[Symbol.asyncIterator]()
    cleanUpLater(async () => {
      this.#child.kill('SIGKILL')
    })
  }

  /** The next line, which is JSON. */
  async hear(): Promise<Record<string, unknown>> {
    const { value, done } = await this.#lines.next()
    if (done) throw new Error('the process ended before it said anything more')
    return JSON.parse(value as string)
  }

  tell(line = 'go'): void {
    this.#child.stdin!.write(`${line}\n`)
  }

  send(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  async kill(): Promise<void> {
    const ended = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await ended
  }
}
