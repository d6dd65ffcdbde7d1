/**
 * Builds the messages that a PostgreSQL client sends, byte by byte, so that tests of the fault proxy decide
 * what comes in which chunk. https://www.postgresql.org/docs/current/protocol-message-formats.html
 */
export const frontend = {
  startup: (): Buffer => packet(int32(3 << 16), text('user'), text('app'), Buffer.from([0])),
  sslRequest: (): Buffer => packet(int32(80877103)),
  cancelRequest: (): Buffer => packet(int32(80877102), int32(1), int32(2)),
  query: (sql: string): Buffer => message('Q', text(sql)),
  parse: (sql: string, name = ''): Buffer => message('P', text(name), text(sql), int16(0)),
  bind: (statement = '', portal = ''): Buffer =>
    message('B', text(portal), text(statement), int16(0), int16(0), int16(0)),
  describe: (): Buffer => message('D', Buffer.from('P'), text('')),
  execute: (portal = ''): Buffer => message('E', text(portal), int32(0)),
  closeStatement: (name: string): Buffer => message('C', Buffer.from('S'), text(name)),
  copyData: (sizeBytes: number): Buffer => message('d', Buffer.alloc(sizeBytes, 'x')),
  flush: (): Buffer => message('H'),
  sync: (): Buffer => message('S'),
  /** What a driver sends for one statement: Parse, Bind, Describe, Execute, Sync. */
  statement: (sql: string): Buffer =>
    Buffer.concat([
      frontend.parse(sql),
      frontend.bind(),
      frontend.describe(),
      frontend.execute(),
      frontend.sync(),
    ]),
}

/** Messages that a PostgreSQL server sends. */
export const backend = {
  commandComplete: (tag: string): Buffer => message('C', text(tag)),
  readyForQuery: (): Buffer => message('Z', Buffer.from('I')),
}

function message(type: string, ...parts: Buffer[]): Buffer {
  return Buffer.concat([Buffer.from(type), packet(...parts)])
}

/** A length, which counts itself, and what it is the length of. */
function packet(...parts: Buffer[]): Buffer {
  const body = Buffer.concat(parts)
  return Buffer.concat([int32(body.length + 4), body])
}

function text(value: string): Buffer {
  return Buffer.from(`${value}\0`)
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
}

function int16(value: number): Buffer {
  const bytes = Buffer.alloc(2)
  bytes.writeInt16BE(value)
  return bytes
}
