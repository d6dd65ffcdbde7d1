import { once } from 'node:events'
import { createServer } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { FakeServer, openPeer, type Peer } from './fakes/peers.ts'
import { type FaultProxy, startFaultProxy } from './fault-proxy.ts'
import type { Fault } from './faults.ts'

describe('startFaultProxy', () => {
  let target: { host: string; port: number }
  let server: FakeServer
  let proxy: FaultProxy

  beforeEach(async () => {
    server = new FakeServer()
    target = await server.listen()
    proxy = await startFaultProxy({ target, seed: 1 })
  })
  afterEach(async () => {
    await proxy.close()
    await server.close()
  })

  /** A connection over which something has already gone both ways. */
  async function open(): Promise<[client: Peer, server: Peer]> {
    const client = await openPeer(proxy.port)
    client.send('ping')
    const peer = await server.accept()
    await peer.receive(4)
    peer.send('pong')
    await client.receive(4)
    return [client, peer]
  }

  it('relays both ways, ends each side when the other does, and counts', async () => {
    const [client, peer] = await open()
    client.socket.end('bye')
    expect(await peer.finish()).toBe('ended')
    peer.socket.end('farewell')
    expect(await client.finish()).toBe('ended')
    expect(peer.received.toString()).toBe('pingbye')
    expect(client.received.toString()).toBe('pongfarewell')
    const stats = await proxy.waitFor(({ connectionsOpen }) => connectionsOpen === 0)
    expect(stats).toMatchObject({ connections: 1, bytesToServer: 7, bytesToClient: 12 })
    expect(proxy.connections).toEqual([])
  })

  it('points a URL or a path at itself', () => {
    expect(proxy.url('postgres://app:secret@db.example:5432/shop?host=other&sslmode=disable')).toBe(
      `postgres://app:secret@127.0.0.1:${proxy.port}/shop?sslmode=disable`,
    )
    expect(proxy.url('https://api.example/v1?host=kept')).toBe(`https://127.0.0.1:${proxy.port}/v1?host=kept`)
    expect(proxy.url('/health')).toBe(`http://127.0.0.1:${proxy.port}/health`)
    expect(proxy.url()).toBe(`http://127.0.0.1:${proxy.port}/`)
  })

  it('says that it cannot read what is not PostgreSQL', async () => {
    await open()
    expect(proxy.stats.connectionsUnreadable).toBe(1)
  })

  it('passes a reset on', async () => {
    const [client, peer] = await open()
    client.socket.resetAndDestroy()
    expect(await peer.finish()).toBe('reset')
    const [otherClient, otherPeer] = await open()
    otherPeer.socket.resetAndDestroy()
    expect(await otherClient.finish()).toBe('reset')
  })

  it('resets a client whose server cannot be reached', async () => {
    await server.close()
    const unreachable = proxy.once('unreachable')
    const client = await openPeer(proxy.port)
    expect(await client.finish()).toBe('reset')
    expect((await unreachable).connection).toBe(1)
  })

  it('pauses a sender whose receiver does not read, and loses nothing', async () => {
    const sizeBytes = 32 * 1_048_576
    const [client, peer] = await open()
    peer.socket.pause()
    const arrived = new Promise<void>((resolve) => {
      let countBytes = 0
      peer.socket.removeAllListeners('data').on('data', (bytes: Buffer) => {
        countBytes += bytes.length
        if (countBytes === sizeBytes) resolve()
      })
      peer.socket.pause()
    })
    client.send(Buffer.alloc(sizeBytes, 'x'))
    for (let i = 0; i < 20; i++) await open()
    expect(proxy.connections[0]?.bytesToServer).toBeLessThan(sizeBytes)
    peer.socket.resume()
    await arrived
  })

  it('close destroys every connection, frees the port and fails those who wait', async () => {
    const [client, peer] = await open()
    const waiting = expect(proxy.once('reset')).rejects.toThrow(
      /closed while a test waited for the event reset/,
    )
    await Promise.all([proxy.close(), proxy.close()])
    await waiting
    await client.finish()
    await peer.finish()
    await expect(proxy.once('reset')).rejects.toThrow(/closed/)
    const successor = createServer().listen(proxy.port, '127.0.0.1')
    await once(successor, 'listening')
    successor.close()
  })

  it('ends a wait in vain by telling what it knows', async () => {
    await expect(proxy.waitFor((stats) => stats.commitsSeen > 3, { timeoutMs: 1 })).rejects.toThrow(
      /in vain.*commitsSeen > 3.*"commitsSeen":0/s,
    )
    const throwing = proxy.waitFor((stats) => {
      if (stats.connections > 0) throw new Error('a mistake in the test')
      return false
    })
    await open()
    await expect(throwing).rejects.toThrow('a mistake in the test')
  })

  it.each([
    { kind: 'reset', rate: 2 },
    { kind: 'reset', times: 0 },
    { kind: 'reset', afterBytes: -1 },
    { kind: 'delay', delayMs: 0.5 },
    { kind: 'truncate' } as never,
    { kind: 'truncate', afterBytes: 1, direction: 'both' } as never,
    { kind: 'half_close', direction: 'both' } as never,
    { kind: 'half_close', afterBytes: -1 },
    { kind: 'cut_at_commit', when: 'sometimes' } as never,
    { kind: 'black_hole', direction: 'up' } as never,
    { kind: 'flood' } as never,
  ] satisfies Fault[])('refuses the fault %j', (fault) => {
    expect(() => proxy.setFault(fault)).toThrow(expect.objectContaining({ code: 'option_invalid' }))
  })

  it('refuses a target without a port', async () => {
    await expect(startFaultProxy({ target: { host: 'db', port: 0 } })).rejects.toThrow(/target/)
  })

  describe('reset', () => {
    it('resets new connections once they are connected', async () => {
      proxy.setFault({ kind: 'reset', times: 1 })
      const client = await openPeer(proxy.port)
      expect(await client.finish()).toBe('reset')
      expect(await (await server.accept()).finish()).toBe('reset')
      await open()
      expect(proxy.stats).toMatchObject({ connections: 2, connectionsReset: 1 })
    })

    it('resets open connections at once', async () => {
      const [client, peer] = await open()
      proxy.setFault({ kind: 'reset' })
      expect(await client.finish()).toBe('reset')
      expect(await peer.finish()).toBe('reset')
    })

    it('resets after so many bytes of one direction', async () => {
      const [client, peer] = await open()
      proxy.setFault({ kind: 'reset', afterBytes: 6, direction: 'to_server' })
      peer.send('a long story')
      await client.receive(16)
      client.send('1234')
      await peer.receive(8)
      client.send('5678')
      expect(await client.finish()).toBe('reset')
      // Node takes a reset that comes together with bytes for an end.
      expect(await peer.finish()).not.toBe('open')
      expect(peer.received.toString()).toBe('ping123456')
    })
  })

  it('refuse: resets a new connection before the server hears of it, and leaves open ones alone', async () => {
    const [client, peer] = await open()
    proxy.setFault({ kind: 'refuse' })
    expect(await (await openPeer(proxy.port)).finish()).toBe('reset')
    client.send('still')
    expect((await peer.receive(9)).toString()).toBe('pingstill')
    expect(server.peers).toHaveLength(1)
    expect(proxy.stats).toMatchObject({ connectionsRefused: 1 })
    proxy.setFault(null)
    await open()
  })

  it('refuse, by rate: the same connections for the same seed', async () => {
    async function refusalsOf(seed: number): Promise<number[]> {
      await proxy.close()
      proxy = await startFaultProxy({ target, seed })
      proxy.setFault({ kind: 'refuse', rate: 0.5 })
      const refused: number[] = []
      for (let id = 1; id <= 16; id++) {
        const decided = Promise.race([proxy.once('refused'), proxy.once('connected')])
        await openPeer(proxy.port)
        if ((await decided).kind === 'refused') refused.push(id)
      }
      return refused
    }
    const refused = await refusalsOf(3)
    expect(refused.length).toBeGreaterThan(0)
    expect(refused.length).toBeLessThan(16)
    expect(await refusalsOf(3)).toEqual(refused)
    expect(await refusalsOf(4)).not.toEqual(refused)
  })

  it('delay: delivers later and in order, also what is sent after it was switched off', async () => {
    const [client, peer] = await open()
    proxy.setFault({ kind: 'delay', delayMs: 1_000, jitterMs: 200, direction: 'to_server' })
    const sentMs = performance.now()
    for (const digit of '12345') {
      const { bytesToServer } = proxy.stats
      client.send(digit)
      await proxy.waitFor((stats) => stats.bytesToServer > bytesToServer)
    }
    expect(peer.received.toString()).toBe('ping')
    proxy.setFault(null)
    client.socket.end('6')
    await peer.finish()
    expect(performance.now() - sentMs).toBeGreaterThanOrEqual(999)
    expect(peer.received.toString()).toBe('ping123456')
  })

  describe('black_hole', () => {
    it('silences open connections both ways, without FIN or RST, for good', async () => {
      const [client, peer] = await open()
      const [otherClient, otherPeer] = await open()
      proxy.setFault({ kind: 'black_hole' })
      expect(proxy.stats.connectionsBlackHoled).toBe(2)
      client.socket.end('lost')
      peer.send('lost')
      otherClient.socket.resetAndDestroy()
      proxy.setFault(null)
      await open() // several turns of the loop: whatever was to pass has passed
      await open()
      expect(client).toMatchObject({ ending: 'open', received: Buffer.from('pong') })
      expect(peer).toMatchObject({ ending: 'open', received: Buffer.from('ping') })
      expect(otherPeer).toMatchObject({ ending: 'open', received: Buffer.from('ping') })
      expect(proxy.connections[0]).toMatchObject({ id: 1, state: 'black_holed' })
    })

    it('silences new connections', async () => {
      proxy.setFault({ kind: 'black_hole', times: 1 })
      const client = await openPeer(proxy.port)
      client.send('lost')
      const peer = await server.accept()
      await proxy.waitFor((stats) => stats.connectionsBlackHoled === 1)
      await open()
      await open()
      expect(peer).toMatchObject({ ending: 'open', received: Buffer.alloc(0) })
    })

    it.each(['to_server', 'to_client'] as const)('silences only %s', async (direction) => {
      const [client, peer] = await open()
      proxy.setFault({ kind: 'black_hole', direction, times: 1 })
      client.socket.end('question')
      peer.socket.end('answer')
      const [hearing, deaf] = direction === 'to_server' ? [client, peer] : [peer, client]
      expect(await hearing.finish()).toBe('ended')
      await open()
      expect(deaf.ending).toBe('open')
      expect(deaf.received).toHaveLength(4)
      expect(hearing.received.length).toBeGreaterThan(4)
    })

    it('gives silent connections up when they are reset', async () => {
      const [client, peer] = await open()
      proxy.setFault({ kind: 'black_hole' })
      proxy.setFault({ kind: 'reset' })
      expect(await client.finish()).toBe('reset')
      expect(await peer.finish()).toBe('reset')
    })
  })

  it('truncate: relays so many bytes of the answer and ends in order', async () => {
    const [client, peer] = await open()
    proxy.setFault({ kind: 'truncate', afterBytes: 6, times: 1 })
    client.send('more?')
    await peer.receive(9)
    peer.send('1234567890')
    expect(await client.finish()).toBe('ended')
    expect(client.received.toString()).toBe('pong123456')
    expect(await peer.finish()).not.toBe('open')
    client.socket.end()
    await proxy.waitFor((stats) => stats.connectionsOpen === 0 && stats.connectionsTruncated === 1)
  })

  it('truncate, to the server: relays so many bytes of the request and ends in order', async () => {
    const [client, peer] = await open()
    proxy.setFault({ kind: 'truncate', afterBytes: 6, direction: 'to_server', times: 1 })
    peer.send('an answer is not counted')
    await client.receive(28)
    client.send('1234567890')
    expect(await peer.finish()).toBe('ended')
    expect(peer.received.toString()).toBe('ping123456')
    expect(await client.finish()).not.toBe('open')
    peer.socket.end()
    await proxy.waitFor((stats) => stats.connectionsOpen === 0 && stats.connectionsTruncated === 1)
  })

  describe('half_close', () => {
    it.each(['to_server', 'to_client'] as const)(
      'ends %s in order, and the other direction goes on',
      async (direction) => {
        const [client, peer] = await open()
        proxy.setFault({ kind: 'half_close', direction, times: 1 })
        const [sender, reader] = direction === 'to_server' ? [client, peer] : [peer, client]
        expect(await reader.finish()).toBe('ended')
        sender.send('is dropped')
        reader.send('still arrives')
        expect((await sender.receive(17)).toString()).toMatch(/still arrives$/)
        expect(reader.received).toHaveLength(4)
        expect(proxy.connections[0]).toMatchObject({ state: 'half_closed' })
        reader.socket.end()
        expect(await sender.finish()).toBe('ended')
        sender.socket.end()
        await proxy.waitFor((stats) => stats.connectionsOpen === 0 && stats.connectionsHalfClosed === 1)
      },
    )

    it('waits for so many bytes of its direction', async () => {
      const [client, peer] = await open()
      proxy.setFault({ kind: 'half_close', afterBytes: 6 })
      peer.send('a long story')
      await client.receive(16)
      client.send('1234567890')
      expect(await peer.finish()).toBe('ended')
      expect(peer.received.toString()).toBe('ping123456')
      expect(client.ending).toBe('open')
    })
  })
})
