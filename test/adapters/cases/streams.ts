import { Readable } from 'node:stream'
import { expect } from 'vitest'
import { makeGate } from '../../contract/shop.ts'
import { waitUntil } from '../../setup/wait.ts'
import { topic } from '../case.ts'
import { expectProblem, expectReplay } from '../expectations.ts'
import { RawConnection, rawPost } from '../raw.ts'

const OPERATION = 'things.create'

export const streams = topic('stream: true', (one) => {
  one('sends the reply while it is made, and replays it whole', async (bench) => {
    const gate = makeGate()
    async function* pieces() {
      yield Buffer.from('first ')
      await gate.pass()
      yield Buffer.from('second')
    }
    const served = await bench.serve({
      policy: { stream: true },
      handle: () => ({ do: 'stream', status: 200, type: 'text/plain', stream: Readable.from(pieces()) }),
    })
    const key = crypto.randomUUID()
    const connection = await RawConnection.open(served.port)
    const early = new Promise<string>((resolve) => {
      const texts: string[] = []
      connection.socket.on('data', (text) => {
        texts.push(`${text}`)
        if (texts.join('').includes('first ')) resolve(texts.join(''))
      })
    })
    connection.socket.write(rawPost(key, '{}'))
    expect(await early).not.toContain('second')
    gate.open()
    expect((await connection.reply()).body).toBe('first second')
    await stored(served, key)
    const replay = await served.send({ key })
    expect([replay.text, replay.headers['idempotent-replayed']]).toEqual(['first second', 'true'])
    expect(replay.headers['content-type']).toMatch(/^text\/plain/)
    expect(served.runs).toBe(1)
  })

  one('JSON too', async (bench) => {
    const served = await bench.serve({ policy: { stream: true } })
    const key = crypto.randomUUID()
    const first = await served.send({ key })
    await stored(served, key)
    expectReplay(first, await served.send({ key }))
  })

  one('over the limit: sent whole, not kept, never run again', async (bench) => {
    const served = await bench.serve({
      policy: { stream: true, replySizeMaxBytes: 1_000 },
      handle: () => ({
        do: 'stream',
        status: 200,
        type: 'text/plain',
        stream: Readable.from(Array.from({ length: 30 }, () => Buffer.alloc(50_000, 'x'))),
      }),
    })
    const key = crypto.randomUUID()
    const first = await served.send({ key })
    expect(first.body.length).toBe(1_500_000)
    await stored(served, key)
    expectProblem(await served.send({ key }), 'reply_not_kept')
    expect(served.runs).toBe(1)
  })

  one('a client that hangs up in the middle gets the whole by its retry', async (bench) => {
    const gate = makeGate()
    async function* pieces() {
      yield Buffer.from('first ')
      await gate.pass()
      for (let i = 0; i < 20; i += 1) yield Buffer.alloc(30_000, 'x')
    }
    const served = await bench.serve({
      policy: { stream: true, operation: OPERATION },
      handle: () => ({ do: 'stream', status: 200, type: 'text/plain', stream: Readable.from(pieces()) }),
    })
    const key = crypto.randomUUID()
    const connection = await RawConnection.open(served.port)
    connection.socket.write(rawPost(key, '{}'))
    await gate.reached
    connection.socket.resetAndDestroy()
    await served.send({ key: null })
    gate.open()
    await stored(served, key)
    expect((await served.send({ key })).body.length).toBe(600_006)
    expect(served.runs).toBe(1)
  })

  one(
    'an error is answered by the framework and stored',
    async (bench) => {
      const served = await bench.serve({
        policy: { stream: true },
        handle: () => ({ do: 'reject', error: new Error('boom') }),
      })
      const key = crypto.randomUUID()
      const first = await served.send({ key })
      await stored(served, key)
      expectReplay(first, await served.send({ key }))
      expect([first.status, served.runs]).toEqual([500, 1])
    },
    ['error_reply'],
  )
})

/** The reply leaves before it is durable, so a retry that comes at once may meet it in progress. */
async function stored(
  served: { send(sent: { key: string }): Promise<{ status: number; json(): { code?: string } }> },
  key: string,
): Promise<void> {
  await waitUntil('the reply is stored', async () => {
    const { status, json } = await served.send({ key })
    return !(status === 409 && json().code === 'in_progress')
  })
}
