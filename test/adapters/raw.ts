import { connect, type Socket } from 'node:net'
import { cleanUpLater } from '../setup/clean-up.ts'

export interface RawReply {
  readonly status: number
  readonly head: string
  readonly body: string
}

/** A connection on which every byte is the test's own. */
export class RawConnection {
  readonly socket: Socket
  #text = ''
  #ended = false
  #wake: () => void = () => {}

  private constructor(socket: Socket) {
    this.socket = socket
    socket.setEncoding('latin1')
    socket.on('data', (text) => {
      this.#text += text
      this.#wake()
    })
    const end = () => {
      this.#ended = true
      this.#wake()
    }
    socket.on('close', end).on('error', end)
    cleanUpLater(async () => void socket.destroy())
  }

  static async open(port: number): Promise<RawConnection> {
    const socket = connect(port, '127.0.0.1')
    await new Promise((resolve) => socket.once('connect', resolve))
    return new RawConnection(socket)
  }

  /** Resolves when everything that arrived is asked for, and the other side has closed. */
  async untilClosed(): Promise<string> {
    while (!this.#ended) await this.#more()
    return this.#text
  }

  /** The next reply, by the length that it tells or by its chunks. Fails when the bytes are no reply. */
  async reply(): Promise<RawReply> {
    const head = await this.#take(/^[\s\S]*?\r\n\r\n/)
    const status = /^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1]
    if (status === undefined) throw new Error(`No reply begins so: ${JSON.stringify(head.slice(0, 80))}`)
    const length = /\r\ncontent-length: (\d+)\r\n/i.exec(head)?.[1]
    if (length !== undefined) {
      return { status: Number(status), head, body: await this.#take(new RegExp(`^[\\s\\S]{${length}}`)) }
    }
    if (!/\r\ntransfer-encoding: chunked\r\n/i.test(head)) return { status: Number(status), head, body: '' }
    let body = ''
    for (;;) {
      const size = Number.parseInt(await this.#take(/^[0-9a-f]+\r\n/i), 16)
      body += (await this.#take(new RegExp(`^[\\s\\S]{${size + 2}}`))).slice(0, -2)
      if (size === 0) return { status: Number(status), head, body }
    }
  }

  async #take(pattern: RegExp): Promise<string> {
    for (;;) {
      const found = pattern.exec(this.#text)?.[0]
      if (found !== undefined) {
        this.#text = this.#text.slice(found.length)
        return found
      }
      if (this.#ended) throw new Error(`Closed after ${JSON.stringify(this.#text.slice(0, 200))}`)
      await this.#more()
    }
  }

  #more(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }
}

/** A POST as it goes over the wire. */
export function rawPost(
  key: string,
  body: string,
  options: { readonly version?: string; readonly path?: string; readonly headers?: string } = {},
): string {
  const { version = '1.1', path = '/things', headers = '' } = options
  return (
    `POST ${path} HTTP/${version}\r\nhost: localhost\r\nx-account: acct_1\r\nidempotency-key: ${key}\r\n` +
    `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n${headers}\r\n${body}`
  )
}
