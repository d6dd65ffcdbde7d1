import { containsCommit } from './commit-text.ts'
import { TESTING_LIMITS } from './limits.ts'

/** A piece of what a client sent, ready to be relayed. */
export type FrontendPiece = { readonly kind: 'bytes'; readonly bytes: Buffer } | CommitPiece

/** A whole batch, up to its Sync, that commits. */
export interface CommitPiece {
  readonly kind: 'commit'
  readonly bytes: Buffer
  /** Where in `bytes` the COMMIT's first message starts. */
  readonly commitAt: number
  /** How many ReadyForQuery the server has sent once it has answered this batch. */
  readonly answersExpected: number
}

type Phase = 'startup' | 'messages' | 'over' | 'unreadable'

const SSL_REQUEST = 80877103
const GSS_ENCRYPTION_REQUEST = 80877104
const CANCEL_REQUEST = 80877102
const PROTOCOL_MAJOR = 3

/** Messages of the query protocols. They are held until the batch ends, because a COMMIT may follow. */
const HELD_TYPES = 'QPBDECSH'
/** COPY data, authentication, function call, Terminate: relayed as they come. */
const PASSED_TYPES = 'dcfpFX'

/**
 * Reads the messages that a PostgreSQL client sends, over chunk boundaries, and finds the batches that
 * commit: a simple Query, a Parse with the Execute that follows it, or the Execute of a statement prepared
 * earlier.
 *
 * What is not PostgreSQL, or is encrypted, becomes `unreadable` and is passed on as it is.
 */
export class FrontendReader {
  /** Requests for encryption, each of which the server answers with one bare byte. */
  negotiations = 0

  /** How many ReadyForQuery the server will have sent for what has been read. */
  #answersExpected = 0
  #phase: Phase = 'startup'
  #held: Buffer = Buffer.alloc(0)
  /** Where in the stream `#held` begins. Positions are absolute, so that they outlive what was released. */
  #heldFrom = 0
  /** The next message to read. */
  #position = 0
  /** Bytes of a message that is passed on unread. */
  #passing = 0
  /** The first message of the COMMIT that this batch executes. */
  #commitFrom: number | null = null
  /** Statements and portals that mean COMMIT, with the position of their first message. */
  readonly #statements = new Map<string, number>()
  readonly #portals = new Map<string, number>()

  get unreadable(): boolean {
    return this.#phase === 'unreadable'
  }

  push(chunk: Buffer): FrontendPiece[] {
    const pieces: FrontendPiece[] = []
    this.#held = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk])
    while (this.#readOne(pieces)) {}
    this.#boundHeld(pieces)
    return pieces
  }

  /** What is still held when the client has ended its side. */
  flush(): FrontendPiece[] {
    const pieces: FrontendPiece[] = []
    this.#release(pieces, this.#end)
    return pieces
  }

  get #end(): number {
    return this.#heldFrom + this.#held.length
  }

  /** Reads one message; false when more bytes are needed. */
  #readOne(pieces: FrontendPiece[]): boolean {
    if (this.#passing > 0) return this.#passOn(pieces)
    if (this.#position >= this.#end) return false
    switch (this.#phase) {
      case 'startup':
        return this.#readStartup()
      case 'messages':
        return this.#readMessage(pieces)
      case 'over':
      case 'unreadable':
        this.#passing = Number.POSITIVE_INFINITY
        return true
      default:
        throw new TypeError(this.#phase satisfies never)
    }
  }

  #passOn(pieces: FrontendPiece[]): boolean {
    const taken = Math.min(this.#passing, this.#end - this.#position)
    this.#passing -= taken
    this.#position += taken
    this.#release(pieces, this.#position)
    return taken > 0
  }

  /** Start-up packets have no type byte: a length, then a version or the code of a request. */
  #readStartup(): boolean {
    const packet = this.#held.subarray(this.#position - this.#heldFrom)
    // A length below 2^24 starts with a zero; TLS (0x16) and HTTP (a letter) do not.
    if (packet[0] !== 0) return this.#enter('unreadable')
    if (packet.length < 8) return false
    const length = packet.readInt32BE(0)
    const code = packet.readInt32BE(4)
    if (length < 8 || length > TESTING_LIMITS.startupSizeMaxBytes) return this.#enter('unreadable')
    const isNegotiation = code === SSL_REQUEST || code === GSS_ENCRYPTION_REQUEST
    if (!isNegotiation && code !== CANCEL_REQUEST && code >>> 16 !== PROTOCOL_MAJOR) {
      return this.#enter('unreadable')
    }
    this.#passing = length
    if (isNegotiation) {
      this.negotiations += 1
      return true
    }
    if (code === CANCEL_REQUEST) return this.#enter('over')
    this.#answersExpected += 1
    return this.#enter('messages')
  }

  #enter(phase: Phase): boolean {
    this.#phase = phase
    return true
  }

  #readMessage(pieces: FrontendPiece[]): boolean {
    const start = this.#position - this.#heldFrom
    const type = String.fromCharCode(this.#held[start]!)
    const isHeld = HELD_TYPES.includes(type)
    if (!isHeld && !PASSED_TYPES.includes(type)) return this.#enter('unreadable')
    if (this.#held.length < start + 5) return false
    const length = this.#held.readInt32BE(start + 1)
    if (length < 4) return this.#enter('unreadable')
    const size = length + 1

    // What is longer than a batch may be is relayed unread: a COMMIT is short.
    if (!isHeld || size > TESTING_LIMITS.batchSizeMaxBytes) {
      this.#forgetUnnamed(type)
      if (type === 'F' || type === 'Q') this.#answersExpected += 1
      this.#passing = size
      return true
    }
    if (this.#held.length < start + size) return false
    this.#readHeld(type, this.#held.subarray(start + 5, start + size), pieces, size)
    return true
  }

  /** A new unnamed statement or portal replaces every old one. */
  #forgetUnnamed(type: string): void {
    if (type === 'P') this.#statements.delete('')
    if (type === 'B') this.#portals.delete('')
  }

  #readHeld(type: string, body: Buffer, pieces: FrontendPiece[], size: number): void {
    const from = this.#position
    this.#position += size
    switch (type) {
      case 'Q':
        if (containsCommit(readString(body, 0))) this.#commitFrom ??= from
        this.#endBatch(pieces, true)
        break
      case 'P':
        this.#readParse(body, from)
        break
      case 'B':
        this.#readBind(body, from)
        break
      case 'E':
        this.#readExecute(body, from)
        break
      case 'C':
        this.#readClose(body)
        break
      case 'S':
        this.#endBatch(pieces, true)
        break
      case 'H':
        this.#endBatch(pieces, false)
        break
    }
  }

  #readParse(body: Buffer, from: number): void {
    const name = readString(body, 0)
    const text = readString(body, Buffer.byteLength(name) + 1)
    this.#statements.delete(name)
    if (containsCommit(text)) remember(this.#statements, name, from)
  }

  #readBind(body: Buffer, from: number): void {
    const portal = readString(body, 0)
    const statement = this.#statements.get(readString(body, Buffer.byteLength(portal) + 1))
    this.#portals.delete(portal)
    if (statement === undefined) return
    remember(this.#portals, portal, statement < this.#heldFrom ? from : statement)
  }

  #readExecute(body: Buffer, from: number): void {
    const portal = this.#portals.get(readString(body, 0))
    // A Parse or Bind of an earlier batch is gone already: the COMMIT starts here.
    if (portal !== undefined) this.#commitFrom ??= portal < this.#heldFrom ? from : portal
  }

  #readClose(body: Buffer): void {
    const names = body[0] === 0x53 /* S */ ? this.#statements : this.#portals
    names.delete(readString(body, 1))
  }

  /** A Sync or a simple Query ends a batch and is answered; a Flush only sends what there is. */
  #endBatch(pieces: FrontendPiece[], isAnswered: boolean): void {
    if (isAnswered) this.#answersExpected += 1
    this.#release(pieces, this.#position)
  }

  #release(pieces: FrontendPiece[], until: number): void {
    const bytes = this.#held.subarray(0, until - this.#heldFrom)
    if (bytes.length === 0) return
    if (this.#commitFrom === null) {
      pieces.push({ kind: 'bytes', bytes })
    } else {
      const commitAt = this.#commitFrom - this.#heldFrom
      pieces.push({ kind: 'commit', bytes, commitAt, answersExpected: this.#answersExpected })
    }
    this.#commitFrom = null
    this.#held = this.#held.subarray(bytes.length)
    this.#heldFrom = until
  }

  /** A batch that grows beyond the bound is let go up to the message that is being read. */
  #boundHeld(pieces: FrontendPiece[]): void {
    if (this.#held.length > TESTING_LIMITS.batchSizeMaxBytes) this.#release(pieces, this.#position)
  }
}

function remember(names: Map<string, number>, name: string, position: number): void {
  if (names.size >= TESTING_LIMITS.commitNamesMax) names.delete(names.keys().next().value ?? '')
  names.set(name, position)
}

/** A zero-terminated string. */
function readString(body: Buffer, start: number): string {
  const end = body.indexOf(0, start)
  return body.toString('utf8', start, end === -1 ? body.length : end)
}
