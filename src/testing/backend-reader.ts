const READY_FOR_QUERY = 'Z'.charCodeAt(0)
const NEGOTIATION_REFUSED = 'N'.charCodeAt(0)

/**
 * Counts the ReadyForQuery messages of a PostgreSQL server, over chunk boundaries: that is how one knows that
 * a batch was answered, also when several are under way.
 */
export class BackendReader {
  answers = 0

  #negotiations = 0
  #unreadable = false
  /** Type and length of the message that is being read, as far as they have come. */
  readonly #header: number[] = []
  /** Bytes of its body that are still to come. */
  #passing = 0

  /** `negotiations` is how often the client has asked for encryption; each is answered with one bare byte. */
  push(chunk: Buffer, negotiations: number): void {
    let position = 0
    while (position < chunk.length && !this.#unreadable) {
      if (this.#passing > 0) {
        const taken = Math.min(this.#passing, chunk.length - position)
        this.#passing -= taken
        position += taken
        continue
      }
      this.#readByte(chunk[position]!, negotiations)
      position += 1
    }
  }

  #readByte(byte: number, negotiations: number): void {
    if (this.#header.length === 0 && this.#negotiations < negotiations) {
      this.#negotiations += 1
      // Anything but a refusal starts encryption.
      this.#unreadable = byte !== NEGOTIATION_REFUSED
      return
    }
    this.#header.push(byte)
    if (this.#header.length < 5) return
    if (this.#header[0] === READY_FOR_QUERY) this.answers += 1
    const length = Buffer.from(this.#header).readInt32BE(1)
    this.#header.length = 0
    this.#passing = Math.max(0, length - 4)
    this.#unreadable = length < 4
  }
}
