import { fdatasync, ftruncateSync, openSync, readFileSync, write, writeSync } from 'node:fs'
import { promisify } from 'node:util'
import type { Entry } from './wire.ts'

const writeTo = promisify(write)
const sync = promisify(fdatasync)

/**
 * What the gateway has done, as lines of JSON in a file that is only ever added to. Lines that are added at the same time
 * share one write and one sync.
 */
export class Journal {
  readonly entries: Entry[]
  readonly #file: number
  #batch: Batch | null = null
  #writing: Promise<void> = Promise.resolve()

  constructor(path: string) {
    this.#file = openSync(path, 'a+')
    const text = readFileSync(this.#file, 'utf8')
    this.entries = parseJournal(text)
    // What was torn was never answered. The next line must not become a part of it.
    ftruncateSync(this.#file, Buffer.byteLength(text.slice(0, text.lastIndexOf('\n') + 1)))
  }

  /** Resolves when the entry is on disk. */
  add(entry: Entry): Promise<void> {
    this.#batch ??= this.#nextBatch()
    this.#batch.lines.push(lineOf(entry))
    this.entries.push(entry)
    return this.#batch.written
  }

  /** Leaves what a power cut in the middle of a write leaves. */
  tear(entry: Entry): void {
    const line = lineOf(entry)
    writeSync(this.#file, line.slice(0, line.length / 2))
  }

  #nextBatch(): Batch {
    const lines: string[] = []
    const written = this.#writing.then(async () => {
      this.#batch = null
      const { bytesWritten } = await writeTo(this.#file, lines.join(''))
      if (bytesWritten !== Buffer.byteLength(lines.join(''))) throw new Error('The journal is full.')
      await sync(this.#file)
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
export function readJournal(path: string): Entry[] {
  return parseJournal(readFileSync(path, 'utf8'))
}

/** Only a line with an end counts; one in the middle that is no JSON is a journal that somebody has changed. */
function parseJournal(text: string): Entry[] {
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Entry)
}

function lineOf(entry: Entry): string {
  return `${JSON.stringify(entry)}\n`
}
