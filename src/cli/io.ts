/** What the command reads and writes: the streams of its process, or those of a test. */
import { createInterface } from 'node:readline/promises'
import type { Readable, Writable } from 'node:stream'
import { Ended, EXIT, usage } from './exit.ts'
import { toWire } from './wire.ts'

export interface Io {
  readonly stdin: Readable & { readonly isTTY?: boolean }
  readonly stdout: Writable
  readonly stderr: Writable & { readonly isTTY?: boolean }
  readonly env: Readonly<Record<string, string | undefined>>
  /** Raised by SIGINT and SIGTERM: what works in batches ends behind the present one. */
  readonly signal: AbortSignal
}

/** Where everything that the command says goes through: no secret that it was given leaves it. */
export class Output {
  readonly json: boolean
  readonly #io: Io
  readonly #secrets = new Set<string>()

  constructor(io: Io, json: boolean) {
    this.#io = io
    this.json = json
  }

  /** From now on this text is masked wherever it would be printed. */
  hide(secret: string): void {
    if (secret.length >= SECRET_LENGTH_MIN) this.#secrets.add(secret)
  }

  /** The answer: JSON where it is asked for, else what a person reads. */
  print(value: unknown, forPeople: () => string): void {
    const text = this.json ? `${JSON.stringify(toWire(value), null, 2)}\n` : forPeople()
    this.#io.stdout.write(this.#masked(text, WORD_LENGTH_MAX))
  }

  /** A text that is the answer itself, such as a script. */
  text(text: string): void {
    this.#io.stdout.write(this.#masked(text, WORD_LENGTH_MAX))
  }

  /** Beside the answer, for people: on stderr, and not with --json. */
  note(text: string): void {
    if (!this.json) this.#io.stderr.write(this.#masked(`${text}\n`))
  }

  error(code: string, message: string): void {
    const text = this.json ? JSON.stringify({ error: { code, message } }) : `onlyonce: ${message}`
    this.#io.stderr.write(this.#masked(`${text}\n`))
  }

  /** Over and over in one line, where a person looks on. */
  redraw(text: string): void {
    if (this.drawing) this.#io.stderr.write(`\r\u001b[K${text}`)
  }

  get drawing(): boolean {
    return this.#io.stderr.isTTY === true && !this.json
  }

  #masked(text: string, longerThan = 0): string {
    let shown = text
    for (const secret of this.#secrets) {
      if (secret.length > longerThan) shown = shown.replaceAll(secret, '***')
    }
    return shown
  }
}

/** Shorter ones are parts of words, and a password that is so short gives little away. */
const SECRET_LENGTH_MIN = 4

/**
 * What is as short as a word is masked in errors, where a driver may repeat its address, and not in answers: `onlyonce` is the password of
 * many a database on a laptop, and a script without that word would be broken. No secret of the library's is that short.
 */
const WORD_LENGTH_MAX = 16

/** Asks before something that cannot be taken back. Where there is no person to ask, --yes has to be given. */
export async function confirm(io: Io, yes: boolean, question: string): Promise<void> {
  if (yes) return
  if (io.stdin.isTTY !== true || io.stderr.isTTY !== true) {
    throw usage(`${question} No terminal is there to ask at: give --yes to go on.`)
  }
  const lines = createInterface({ input: io.stdin, output: io.stderr, terminal: false })
  try {
    const answer = await lines.question(`${question} [y/N] `, { signal: io.signal })
    if (!/^y(?:es)?$/i.test(answer.trim())) throw new Ended(EXIT.found, 'declined', 'Nothing was changed.')
  } finally {
    lines.close()
  }
}

/** All of stdin, or of a file, as bytes; at most so many. */
export async function readAll(from: Readable, sizeMaxBytes: number): Promise<Buffer> {
  const parts: Buffer[] = []
  let size = 0
  for await (const part of from) {
    parts.push(Buffer.from(part))
    size += parts.at(-1)!.length
    if (size > sizeMaxBytes) throw usage(`What is read has more than ${sizeMaxBytes} bytes.`)
  }
  return Buffer.concat(parts)
}
