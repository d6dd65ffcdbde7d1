import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../test/setup/database.ts'
import { bind, flush, statement } from './flush.ts'
import { closeMessage, encode, parseMessage, runMessage, SYNC_MESSAGE } from './messages.ts'

describe('messages of the extended protocol', () => {
  it('are as long as they say', () => {
    fc.assert(
      fc.property(fc.array(fc.option(fc.string({ unit: 'binary' }))), fc.string(), (values, text) => {
        const messages = [closeMessage('n'), parseMessage('n', text), runMessage('n', values), SYNC_MESSAGE]
        const bytes = encode(messages)
        let offset = 0
        const types: string[] = []
        while (offset < bytes.length) {
          types.push(String.fromCharCode(bytes[offset]!))
          offset += 1 + bytes.readInt32BE(offset + 1)
        }
        expect(offset).toBe(bytes.length)
        expect(types.join('')).toBe('CPBES')
      }),
    )
  })

  it('bring any value to PostgreSQL and back', async () => {
    const client = await (await freshDatabase()).pool({ max: 1 }).connect()
    const echo = statement(`SELECT $1::text, encode($2::bytea, 'hex'), $3::text IS NULL`)
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit: 'binary' }),
        fc.uint8Array(),
        fc.boolean(),
        async (text, bytes, named) => {
          const sent = Buffer.from(text.replaceAll('\0', ''), 'utf8').toString('utf8')
          const { rows } = await flush(client, [bind(echo, sent, Buffer.from(bytes), null)], named)
          expect(rows[0]![0]).toEqual([sent, Buffer.from(bytes).toString('hex'), 't'])
        },
      ),
      { numRuns: 300 },
    )
    client.release()
  })

  it('leave the connection in order when a statement fails, prepared or not', async () => {
    const client = await (await freshDatabase()).pool({ max: 1 }).connect()
    const one = statement('SELECT 1')
    const broken = statement('SELECT 1 / $1::int')
    const unparsable = statement('SELEKT 1')
    for (let round = 0; round < 3; round += 1) {
      for (const named of [true, false]) {
        const failing = [bind(one), bind(broken, '0'), bind(one)]
        await expect(flush(client, failing, named)).rejects.toMatchObject({ code: '22012' })
        await expect(flush(client, [bind(unparsable)], named)).rejects.toMatchObject({ code: '42601' })
        const { rows } = await flush(client, [bind(broken, '1'), bind(one)], named)
        expect(rows).toEqual([[['1']], [['1']]])
      }
    }
    client.release()
  })
})
