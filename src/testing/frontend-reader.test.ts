import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { frontend } from './fakes/messages.ts'
import { type FrontendPiece, FrontendReader } from './frontend-reader.ts'
import { TESTING_LIMITS } from './limits.ts'

function read(...chunks: Buffer[]): FrontendPiece[] {
  const reader = new FrontendReader()
  reader.push(frontend.startup())
  return chunks.flatMap((chunk) => reader.push(chunk))
}

/** For each batch that commits: what stands before the COMMIT, and the COMMIT to the end of the batch. */
function commitsOf(pieces: FrontendPiece[]): [before: Buffer, commit: Buffer][] {
  return pieces.flatMap((piece) =>
    piece.kind === 'commit'
      ? [[piece.bytes.subarray(0, piece.commitAt), piece.bytes.subarray(piece.commitAt)] as [Buffer, Buffer]]
      : [],
  )
}

const NOTHING = Buffer.alloc(0)
const { query, parse, bind, execute, sync, flush, statement, closeStatement } = frontend

describe('FrontendReader', () => {
  it('finds a COMMIT in a simple Query', () => {
    expect(commitsOf(read(query('COMMIT')))).toEqual([[NOTHING, query('COMMIT')]])
  })

  it('finds a COMMIT in the extended protocol, from its Parse to its Sync', () => {
    const pieces = read(Buffer.concat([statement('INSERT INTO t VALUES (1)'), statement('COMMIT')]))
    expect(commitsOf(pieces)).toEqual([[NOTHING, statement('COMMIT')]])
  })

  it('tells the COMMIT from the statements that share its batch', () => {
    const insert = Buffer.concat([parse('INSERT INTO t VALUES (1)'), bind(), execute()])
    expect(commitsOf(read(Buffer.concat([insert, statement('COMMIT')])))).toEqual([
      [insert, statement('COMMIT')],
    ])
  })

  it('finds the execution of a COMMIT that was prepared earlier', () => {
    const prepare = Buffer.concat([parse('COMMIT', 'end_it'), sync()])
    const run = Buffer.concat([bind('end_it'), execute(), sync()])
    expect(commitsOf(read(prepare))).toEqual([])
    expect(commitsOf(read(prepare, run, statement('SELECT 1'), run))).toEqual([
      [NOTHING, run],
      [NOTHING, run],
    ])
  })

  it('finds the execution of a portal that was bound in an earlier batch', () => {
    const run = Buffer.concat([execute('portal'), sync()])
    const pieces = read(parse('COMMIT', 'end_it'), bind('end_it', 'portal'), flush(), run)
    expect(commitsOf(pieces)).toEqual([[NOTHING, run]])
  })

  it('forgets a statement that was closed or replaced', () => {
    const run = Buffer.concat([bind('s'), execute(), sync()])
    expect(commitsOf(read(parse('COMMIT', 's'), closeStatement('s'), parse('SELECT 1', 's'), run))).toEqual(
      [],
    )
    expect(commitsOf(read(parse('COMMIT'), parse('SELECT 1'), bind(), execute(), sync()))).toEqual([])
  })

  it.each([
    query("SELECT 'COMMIT'"),
    query("INSERT INTO notes VALUES ('Q\0\0\0\x0bCOMMIT')"),
    statement("SELECT 'COMMIT'"),
    parse('COMMIT'),
    Buffer.concat([parse('COMMIT'), sync()]),
    frontend.copyData(100),
    query('ROLLBACK'),
  ])('finds no COMMIT where none is executed (%#)', (bytes) => {
    expect(commitsOf(read(bytes))).toEqual([])
  })

  it('counts the answers that are due with a COMMIT, also when more follows in the same chunk', () => {
    const pieces = read(
      Buffer.concat([query('BEGIN'), statement('SELECT 1'), statement('COMMIT'), query('BEGIN')]),
    )
    // The start-up is answered too.
    expect(pieces.find((piece) => piece.kind === 'commit')).toMatchObject({ answersExpected: 4 })
  })

  it('reads past a refused request for encryption', () => {
    const reader = new FrontendReader()
    reader.push(frontend.sslRequest())
    reader.push(frontend.startup())
    expect(reader.negotiations).toBe(1)
    expect(commitsOf(reader.push(query('COMMIT')))).toHaveLength(1)
  })

  it.each([
    ['TLS', Buffer.from([0x16, 3, 1, 0, 200])],
    ['HTTP', Buffer.from('GET / HTTP/1.1\r\n')],
    ['another protocol', Buffer.from([0, 0, 0, 12, 9, 9, 9, 9])],
  ])('passes %s on unread', (_, bytes) => {
    const reader = new FrontendReader()
    expect(reader.push(bytes)).toEqual([{ kind: 'bytes', bytes }])
    expect(reader.unreadable).toBe(true)
    expect(reader.push(query('COMMIT'))).toEqual([{ kind: 'bytes', bytes: query('COMMIT') }])
  })

  it('passes on a message of no known type, and everything after it', () => {
    const bytes = Buffer.concat([parse('SELECT 1'), Buffer.from('!!!'), query('COMMIT')])
    expect(read(bytes)).toEqual([{ kind: 'bytes', bytes }])
  })

  it('takes a cancel request for what it is', () => {
    const reader = new FrontendReader()
    reader.push(frontend.cancelRequest())
    expect(reader.unreadable).toBe(false)
  })

  it('holds no more than its bound', () => {
    const half = Buffer.concat([
      parse(`SELECT '${'x'.repeat(TESTING_LIMITS.batchSizeMaxBytes / 2)}'`),
      bind(),
    ])
    const pieces = read(half, half, half)
    expect(Buffer.concat(pieces.map((piece) => piece.bytes)).length).toBeGreaterThanOrEqual(2 * half.length)
    const long = query(`SELECT '${'x'.repeat(TESTING_LIMITS.batchSizeMaxBytes)}'`)
    expect(commitsOf(read(long.subarray(0, 1_000), long.subarray(1_000), query('COMMIT')))).toHaveLength(1)
  })

  it('finds the same, and loses no byte, however the stream is cut into chunks', () => {
    const run = Buffer.concat([bind('end_it'), execute(), sync()])
    const messages = [
      query('BEGIN'),
      parse('COMMIT', 'end_it'),
      statement("SELECT 'COMMIT'"),
      run,
      query('COMMIT'),
    ]
    const stream = Buffer.concat([
      frontend.startup(),
      ...messages,
      frontend.copyData(50),
      statement('COMMIT'),
    ])
    const whole = new FrontendReader().push(stream)
    expect(commitsOf(whole)).toHaveLength(3)

    fc.assert(
      fc.property(fc.array(fc.nat(stream.length), { maxLength: 40 }), (cuts) => {
        const positions = [0, ...cuts.sort((a, b) => a - b), stream.length]
        const reader = new FrontendReader()
        const pieces = positions.slice(1).flatMap((end, i) => reader.push(stream.subarray(positions[i], end)))
        expect(commitsOf(pieces)).toEqual(commitsOf(whole))
        expect(Buffer.concat(pieces.map((piece) => piece.bytes))).toEqual(stream)
      }),
    )
  })

  it('gives back what is left when the client ends in the middle of a message', () => {
    const reader = new FrontendReader()
    reader.push(frontend.startup())
    const part = query('COMMIT').subarray(0, 7)
    expect(reader.push(part)).toEqual([])
    expect(reader.flush()).toEqual([{ kind: 'bytes', bytes: part }])
  })
})
