import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { backend, frontend } from './fakes/messages.ts'
import { FakeServer, openPeer, type Peer } from './fakes/peers.ts'
import { type FaultProxy, startFaultProxy } from './fault-proxy.ts'
import type { CommitCut, CutAtCommit } from './faults.ts'

const { startup, statement, query, parse, bind, execute, sync } = frontend
const BEFORE = Buffer.concat([startup(), query('BEGIN')])
const ANSWER = Buffer.concat([backend.commandComplete('COMMIT'), backend.readyForQuery()])

describe('a fault proxy that cuts at COMMIT', () => {
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

  /** A session that has begun a transaction; the server has answered the start-up and the BEGIN. */
  async function begin(): Promise<[client: Peer, server: Peer]> {
    const client = await openPeer(proxy.port)
    client.send(BEFORE)
    const peer = await server.accept()
    await peer.receive(BEFORE.length)
    peer.send(backend.readyForQuery(), backend.readyForQuery())
    await client.receive(2 * backend.readyForQuery().length)
    return [client, peer]
  }

  it('lets a COMMIT pass, and counts it, while no fault is set', async () => {
    const [client, peer] = await begin()
    client.send(statement('COMMIT'))
    await peer.receive(BEFORE.length + statement('COMMIT').length)
    expect(proxy.stats).toMatchObject({ commitsSeen: 1, commitsCut: { before: 0, after: 0, within: 0 } })
  })

  it.each([
    ['a simple Query', query('COMMIT')],
    ['the extended protocol', statement('COMMIT')],
  ])('before: holds back the COMMIT of %s', async (_, commit) => {
    const [client, peer] = await begin()
    proxy.setFault({ kind: 'cut_at_commit', when: 'before' })
    const cut = proxy.once('commit_cut')
    client.send(Buffer.concat([statement('SELECT 1'), commit]))
    expect(await cut).toEqual({ kind: 'commit_cut', connection: 1, when: 'before', serverCloses: null })
    expect(await client.finish()).toBe('reset')
    expect(await peer.finish()).not.toBe('open')
    expect(peer.received).toEqual(Buffer.concat([BEFORE, statement('SELECT 1')]))
    await proxy.waitFor((stats) => stats.connectionsOpen === 0)
  })

  it.each(['commit', 'batch'] as const)('before, from the %s on: what shares its batch', async (from) => {
    const insert = Buffer.concat([parse('INSERT INTO t VALUES (1)'), bind(), execute()])
    const [client, peer] = await begin()
    proxy.setFault({ kind: 'cut_at_commit', when: 'before', from })
    client.send(Buffer.concat([insert, statement('COMMIT')]))
    expect(await client.finish()).toBe('reset')
    await peer.finish()
    expect(peer.received).toEqual(from === 'commit' ? Buffer.concat([BEFORE, insert]) : BEFORE)
  })

  it('before: holds back a COMMIT that comes byte by byte', async () => {
    const [client, peer] = await begin()
    proxy.setFault({ kind: 'cut_at_commit', when: 'before' })
    client.socket.setNoDelay(true)
    for (const byte of statement('COMMIT')) {
      await new Promise<void>((written) => client.socket.write(Buffer.from([byte]), () => written()))
    }
    expect(await client.finish()).toBe('reset')
    await peer.finish()
    expect(peer.received).toEqual(BEFORE)
  })

  it('before: holds back the execution of a COMMIT that was prepared earlier', async () => {
    const prepare = Buffer.concat([parse('COMMIT', 'end_it'), sync()])
    const [client, peer] = await begin()
    proxy.setFault({ kind: 'cut_at_commit', when: 'before' })
    client.send(prepare)
    await peer.receive(BEFORE.length + prepare.length)
    client.send(Buffer.concat([bind('end_it'), execute(), sync()]))
    expect(await client.finish()).toBe('reset')
    await peer.finish()
    expect(peer.received).toEqual(Buffer.concat([BEFORE, prepare]))
  })

  it('lets the word COMMIT pass inside another statement', async () => {
    const harmless = Buffer.concat([query("SELECT 'COMMIT'"), statement("SELECT '; COMMIT'")])
    const [client, peer] = await begin()
    proxy.setFault({ kind: 'cut_at_commit', when: 'before' })
    client.send(harmless)
    await peer.receive(BEFORE.length + harmless.length)
    expect(proxy.stats.commitsSeen).toBe(0)
  })

  it('within: forwards a part of the COMMIT, and not all of it', async () => {
    const [client, peer] = await begin()
    proxy.setFault({ kind: 'cut_at_commit', when: 'within' })
    client.send(statement('COMMIT'))
    expect(await client.finish()).toBe('reset')
    await peer.finish()
    const part = peer.received.subarray(BEFORE.length)
    expect(part.length).toBeGreaterThan(0)
    expect(part.length).toBeLessThan(statement('COMMIT').length)
    expect(part).toEqual(statement('COMMIT').subarray(0, part.length))
    expect(proxy.stats.commitsCut).toEqual({ before: 0, after: 0, within: 1 })
  })

  it('after, at once: resets the client before the server has answered', async () => {
    const [client, peer] = await begin()
    proxy.setFault({ kind: 'cut_at_commit', when: 'after', serverCloses: 'at_once' })
    const cut = proxy.once('commit_cut')
    client.send(statement('COMMIT'))
    expect(await cut).toMatchObject({ when: 'after', serverCloses: 'at_once' })
    expect(await client.finish()).toBe('reset')
    expect(await peer.finish()).toBe('ended')
    expect(peer.received).toEqual(Buffer.concat([BEFORE, statement('COMMIT')]))
  })

  it('after, after the answer: resets the client once the COMMIT itself was answered, and relays none of it', async () => {
    const [client, peer] = await begin()
    proxy.setFault({ kind: 'cut_at_commit', when: 'after', serverCloses: 'after_answer' })
    const received = client.received
    client.send(Buffer.concat([statement('SELECT 1'), statement('COMMIT')]))
    await peer.receive(BEFORE.length + statement('SELECT 1').length + statement('COMMIT').length)

    peer.send(backend.readyForQuery()) // for the SELECT only
    expect(await roundTrip()).toBe('pong')
    expect(client.ending).toBe('open')
    expect(proxy.connections[0]).toMatchObject({ id: 1, state: 'awaiting_answer', commitsSeen: 1 })

    const cut = proxy.once('commit_cut')
    peer.send(ANSWER)
    expect(await cut).toMatchObject({ when: 'after', serverCloses: 'after_answer' })
    expect(await client.finish()).toBe('reset')
    expect(client.received).toEqual(received)
    await peer.finish()
  })

  it('after, after the answer: does not wait for a server that ends', async () => {
    const [client, peer] = await begin()
    proxy.setFault({ kind: 'cut_at_commit', when: 'after', serverCloses: 'after_answer' })
    client.send(statement('COMMIT'))
    await peer.receive(BEFORE.length + statement('COMMIT').length)
    peer.socket.end()
    expect(await client.finish()).toBe('reset')
    expect(proxy.stats.commitsCut.after).toBe(1)
  })

  it('cuts so many times and no more', async () => {
    proxy.setFault({ kind: 'cut_at_commit', when: 'before', times: 1 })
    const [first] = await begin()
    const [second, peer] = await begin()
    first.send(query('COMMIT'))
    expect(await first.finish()).toBe('reset')
    second.send(query('COMMIT'))
    await peer.receive(BEFORE.length + query('COMMIT').length)
    expect(proxy.stats).toMatchObject({ commitsSeen: 2, commitsCut: { before: 1 } })
  })

  it('makes the same choices from the same seed, whatever the order of the connections, and others from another', async () => {
    const fault: CutAtCommit = { kind: 'cut_at_commit', when: 'random', rate: 0.8, serverCloses: 'at_once' }
    const forwards = await choicesOf(7, fault, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])
    const backwards = await choicesOf(7, fault, [12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1])
    expect(backwards).toEqual(forwards)
    expect(new Set(forwards)).toEqual(new Set(['before', 'after', 'within', 'spared']))
    expect(await choicesOf(8, fault, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])).not.toEqual(forwards)
  })

  /** What happens to one COMMIT on each of twelve connections that commit in this order. */
  async function choicesOf(
    seed: number,
    fault: CutAtCommit,
    order: number[],
  ): Promise<(CommitCut | 'spared')[]> {
    await proxy.close()
    proxy = await startFaultProxy({ target, seed })
    proxy.setFault(fault)
    const sessions: [Peer, Peer][] = []
    for (const _ of order) sessions.push(await begin())
    const choices: (CommitCut | 'spared')[] = []
    for (const id of order) {
      const before = proxy.stats
      sessions[id - 1]![0].send(query('COMMIT'))
      await proxy.waitFor((stats) => stats.commitsSeen > before.commitsSeen)
      // The cut is made in the same turn in which the COMMIT is seen.
      const { commitsCut } = proxy.stats
      const cuts = ['before', 'after', 'within'] as const
      choices[id - 1] = cuts.find((cut) => commitsCut[cut] > before.commitsCut[cut]) ?? 'spared'
    }
    return choices
  }

  /**
   * Everything sent before has passed through the proxy when this has: it takes several turns of the loop.
   */
  async function roundTrip(): Promise<string> {
    const client = await openPeer(proxy.port)
    client.send('ping')
    const peer = await server.accept()
    await peer.receive(4)
    peer.send('pong')
    return (await client.receive(4)).toString()
  }
})
