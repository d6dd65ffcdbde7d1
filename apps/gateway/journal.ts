import {
  closeSync,
  fchmodSync,
  fdatasync,
  ftruncateSync,
  openSync,
  readFileSync,
  write,
  writeSync,
} from 'node:fs'
import { promisify } from 'node:util'

const writeTo = promisify(write)
const sync = promisify(fdatasync)

/**
 * Lines of JSON in a file that is only ever added to. Lines that are added at the same time share one write and, where the
 * file has to outlive the machine and not only the process, one sync.
 */
export class Journal<Line> {
  /** What was in the file when it was opened. */
  readonly lines: readonly Line[]
  readonly #file: number
  readonly #synced: boolean
  #batch: Batch | null = null
  #writing: Promise<void> = Promise.resolve()
  #pending = 0
  #broken: unknown = null

  constructor(path: string, { synced }: { readonly synced: boolean }) {
    this.#synced = synced
    // What was paid, by whom and with what: for its owner alone, also where an older one was open to others.
    this.#file = openSync(path, 'a+', 0o600)
    fchmodSync(this.#file, 0o600)
    const text = readFileSync(this.#file, 'utf8')
    this.lines = parseJournal(text)
    // What was torn was never answered. The next line must not become a part of it.
    ftruncateSync(this.#file, Buffer.byteLength(text.slice(0, text.lastIndexOf('\n') + 1)))
  }

  /** Throws after a write has failed: nobody knows what is in the file since then, so nothing more is added to it. */
  checkSound(): void {
    if (this.#broken !== null) throw new Error('The books cannot be written.', { cause: this.#broken })
  }

  /** Resolves when the line is in the file. */
  add(line: Line): Promise<void> {
    if (this.#broken !== null) return Promise.reject(this.#broken)
    this.#batch ??= this.#nextBatch()
    this.#batch.lines.push(textOf(line))
    return this.#batch.written
  }

  /** Resolves when all that was added so far is in the file; null when it is there already. */
  settled(): Promise<void> | null {
    return this.#pending === 0 ? null : this.#writing
  }

  /** Leaves what a power cut in the middle of a write leaves. */
  tear(line: Line): void {
    const text = textOf(line)
    writeSync(this.#file, text.slice(0, text.length / 2))
  }

  async close(): Promise<void> {
    await this.settled()
    closeSync(this.#file)
  }

  #nextBatch(): Batch {
    const lines: string[] = []
    this.#pending += 1
    const written = this.#writing.then(async () => {
      this.#batch = null
      const text = lines.join('')
      const { bytesWritten } = await writeTo(this.#file, text)
      if (bytesWritten !== Buffer.byteLength(text)) throw new Error('The disk is full.')
      if (this.#synced) await sync(this.#file)
      this.#pending -= 1
    })
    // Told to all who wait for it, who may be nobody: a rejection that nobody hears would end the process.
    written.catch((error) => {
      this.#broken = error
    })
    this.#writing = written
    return { lines, written }
  }
}

interface Batch {
  readonly lines: string[]
  readonly written: Promise<void>
}

/** Reads a journal, whether its gateway lives or not. */
export function readJournal<Line>(path: string): Line[] {
  return parseJournal(readFileSync(path, 'utf8'))
}

/** Only a line with an end counts; one in the middle that is no JSON is a journal that somebody has changed. */
function parseJournal<Line>(text: string): Line[] {
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Line)
}

function textOf(line: unknown): string {
  return `${JSON.stringify(line)}\n`
}
