import { once } from 'node:events'
import { connect } from 'node:net'

/** What came back for bytes that no HTTP client would send. */
export interface RawAnswer {
  readonly status: number
  readonly head: string
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look at what came, whatever it is.
  readonly body: any
}

/**
 * Sends bytes as they are and reads until the other side closes. Say `Connection: close` in them, or `hangsUp`: then this
 * side is closed behind them.
 */
export async function sendRaw(
  url: string,
  bytes: string | Buffer,
  { hangsUp = false }: { readonly hangsUp?: boolean } = {},
): Promise<RawAnswer> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  socket.on('error', () => {})
  if (hangsUp) socket.end(bytes)
  else socket.write(bytes)
  await once(socket, 'close')
  const [head = '', ...rest] = Buffer.concat(chunks).toString('utf8').split('\r\n\r\n')
  const text = rest.join('\r\n\r\n')
  const body = text.startsWith('{') ? JSON.parse(text) : text
  return { status: Number(head.split(' ')[1]), head, text, body }
}
