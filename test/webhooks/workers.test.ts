import { createServer } from 'node:net'
import { expect, it } from 'vitest'
import { startWorkers } from '../../src/workers/index.ts'
import { waitUntil } from '../contract/shop.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { account, openDesk, openReceiver } from './desk.ts'

it('workers bring events to their receivers, and close lets what is under way finish', async () => {
  const desk = await openDesk()
  const receiver = await openReceiver()
  let finish = () => {}
  receiver.answer = (_, response) => {
    if (receiver.got.length < 20) response.writeHead(200).end()
    else finish = () => void response.writeHead(200).end()
  }
  await desk.hooks.endpoints.create({ account, url: receiver.url })
  startWorkers(desk.once, { defaults: false, workers: [desk.office, desk.hooks.deliverer()], everyMs: 20 })
  const ids = await desk.emit(20)
  await waitUntil('all are out', () => receiver.got.length === 20)
  expect([...receiver.ids()].sort()).toEqual([...ids].sort())
  const closed = desk.once.close({ maxMs: 5_000 })
  finish()
  await closed
  const rows = await desk.rows('webhook_deliveries')
  expect(rows.map(({ state }) => state)).toEqual(Array(20).fill('delivered'))
  await expect(desk.hooks.endpoints.list({ account })).rejects.toMatchObject({ code: 'closed' })
})

it('over https the name is asked of the judged address, and nothing is said in the clear', async () => {
  const heard: Buffer[] = []
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', (bytes) => {
      heard.push(bytes)
      socket.destroy()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanUpLater(() => new Promise((resolve) => server.close(() => resolve())))
  const { port } = server.address() as { port: number }
  const desk = await openDesk({ resolve: async () => ['127.0.0.1'] })
  await desk.hooks.endpoints.create({ account, url: `https://hooks.shop.example:${port}/` })
  const [id] = await desk.send(1)
  expect(heard).toHaveLength(1)
  // A ClientHello, which names the host.
  expect(heard[0]![0]).toBe(0x16)
  expect(heard[0]!.includes('hooks.shop.example')).toBe(true)
  expect(heard[0]!.includes(id!)).toBe(false)
  expect((await desk.hooks.deliveries.list({ account })).items).toMatchObject([
    { state: 'pending', status: null },
  ])
})
