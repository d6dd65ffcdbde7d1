import { createSocket } from 'node:dgram'
import { describe, expect, it } from 'vitest'
import { isPublicAddress } from '../../src/webhooks/index.ts'
import { post } from '../../src/webhooks/post.ts'
import { askDns, checkUrl, pinnedLookup, type TargetRules } from '../../src/webhooks/target.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { account, openDesk, openReceiver } from './desk.ts'

const refused = expect.objectContaining({ code: 'webhook_url_refused', status: 400 })

const PRIVATE = `
0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 127.0.0.1 127.255.255.254 168.63.129.16 169.254.0.1 169.254.169.254
172.16.0.1 172.31.255.255 192.0.0.1 192.0.2.1 192.88.99.1 192.168.0.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1
224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255
:: ::1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:8.8.8.8 ::ffff:169.254.169.254 64:ff9b::7f00:1 64:ff9b::8.8.8.8
64:ff9b:1::1 100::1 fc00::1 fd00:ec2::254 fdff::1 fe80::1 fe80::1%eth0 febf::1 fec0::1 ff02::1 ff0e::1 2001::1 2001:0:7f00:1::
2001:10::1 2001:20::1 2001:db8::1 2002:7f00:1:: 2002:a9fe:a9fe::1 3fff::1 4000::1 2606:4700::1%lo`
  .trim()
  .split(/\s+/)

const PUBLIC = `
1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 168.63.129.15 168.63.129.17 169.253.255.255 169.255.0.0 172.15.255.255
172.32.0.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 223.255.255.255 2606:4700:4700::1111 2a00:1450:4001:830::200e
2001:4860:4860::8888 2003::1`
  .trim()
  .split(/\s+/)

const URLS = `
https://127.0.0.1/ https://2130706433/ https://0x7f000001/ https://0x7f.1/ https://017700000001/ https://0177.0.0.1/ https://127.1/
https://127.0.1/ https://0/ https://0.0.0.0/ https://[::]/ https://[::1]/ https://[::ffff:127.0.0.1]/ https://[::ffff:7f00:1]/
https://[0:0:0:0:0:ffff:10.0.0.1]/ https://[fd00:ec2::254]/ https://[fe80::1]/ https://[64:ff9b::a9fe:a9fe]/ https://[2002:a9fe:a9fe::]/
https://169.254.169.254/latest/meta-data/ https://2852039166/ https://0xa9fea9fe/ https://0251.0376.0251.0376/ https://10.0.0.1/
https://localhost/ https://LOCALHOST/ https://localhost./ https://a.localhost/ https://printer.local/ https://metadata.google.internal/
https://intranet/ https://router.lan/ https://db.corp./ https://１２７.０.０.１/ https://①27.0.0.1/ https://127。0。0。1/
https://user@shop.example/ https://user:secret@shop.example/ https://8.8.8.8@127.0.0.1/ https://:secret@shop.example/
http://shop.example/ http://8.8.8.8/ ftp://shop.example/ file:///etc/passwd gopher://shop.example/ javascript:alert(1) data:,x
https://shop.example:22/ https://shop.example:25/ https://shop.example:0/ https://shop.example/#fragment https:// shop.example //shop.example/
https://shop.example\\@127.0.0.1/ https://shop.example:99999/ https://[::1 https://100.64.1.1/ https://[ff02::1]/ https://256.256.256.256/`
  .trim()
  .split(/\s+/)

const strict: TargetRules = { allowPrivate: false, resolve: async () => [] }

describe('addresses', () => {
  it.each(PRIVATE)('%s is not public', (address) => expect(isPublicAddress(address)).toBe(false))
  it.each(PUBLIC)('%s is public', (address) => expect(isPublicAddress(address)).toBe(true))
  it('are addresses', () => {
    for (const text of ['', 'localhost', '1.2.3', '2130706433', '0x7f.1'])
      expect(isPublicAddress(text)).toBe(false)
  })
})

describe('an address is refused by its letters', () => {
  it.each(URLS)('%s', (url) => expect(() => checkUrl(url, strict)).toThrow(refused))
  it.each([
    '',
    7,
    null,
    `https://shop.example/${'x'.repeat(2_048)}`,
    `https://shop.example/${'ü'.repeat(400)}`,
    'https://shop.example/a b',
    'https://shop.exa\tmple/',
    'https://shop.example/\n',
  ])('%j', (url) => expect(() => checkUrl(url, strict)).toThrow(refused))
  it.each([
    'https://shop.example/hooks?a=b',
    'https://shop.example.:443/',
    'https://shop.example:8443/hooks',
    'https://8.8.8.8/',
    'https://[2606:4700:4700::1111]:8443/',
    'https://größe.example/ü',
    'https://localhost.example/',
    'https://shop.example:80/',
    'https://shop.example/hooks#',
  ])('but not %s', (url) => expect(checkUrl(url, strict).protocol).toBe('https:'))
  it('has one spelling without a fragment and a query, and a port that there is', () => {
    for (const end of ['', '#', '?', '?#'])
      expect(checkUrl(`https://shop.example/hooks${end}`, strict).href).toBe('https://shop.example/hooks')
    expect(checkUrl('https://shop.example/hooks?a#', strict).href).toBe('https://shop.example/hooks?a')
    expect(() => checkUrl('http://127.0.0.1:0/', { allowPrivate: true })).toThrow(refused)
  })
})

describe('a name is refused by what it resolves to', () => {
  const send = (url: string, rules: TargetRules) =>
    post({ url, headers: {}, body: Buffer.from('{}'), timeoutMs: 300 }, rules)
  const resolvingTo = (...addresses: string[]): TargetRules => ({ ...strict, resolve: async () => addresses })

  it.each(PRIVATE)('%s', async (address) => {
    await expect(send('https://shop.example/', resolvingTo(address))).rejects.toEqual(refused)
  })

  it('one private address among public ones, in any place, and nothing at all', async () => {
    for (const rules of [
      resolvingTo('8.8.8.8', '10.0.0.1'),
      resolvingTo('::1', '2606:4700::1'),
      resolvingTo(),
      resolvingTo('shop.example'),
    ]) {
      await expect(send('https://shop.example/', rules)).rejects.toEqual(refused)
    }
  })

  it('its letters are judged again, whatever was allowed when the endpoint was made', async () => {
    for (const url of ['http://shop.example/', 'https://shop.example:22/', 'https://a@shop.example/']) {
      const asked: string[] = []
      const resolve = async (hostname: string) => [`10.0.0.${asked.push(hostname)}`]
      await expect(send(url, { ...strict, resolve })).rejects.toEqual(refused)
      expect(asked).toEqual([])
    }
  })

  it('the refusal is the same for a private address, for a name that is not there, and for servers that do not answer', async () => {
    const failing = (code: string): TargetRules => ({
      ...strict,
      resolve: async () => {
        throw Object.assign(new Error(`query ${code} intranet.shop.example`), { code })
      },
    })
    const codes = ['ENOTFOUND', 'ENODATA', 'ESERVFAIL', 'ETIMEOUT', 'EREFUSED', 'ECONNREFUSED']
    const rules = [resolvingTo('10.20.30.40'), resolvingTo('::1'), resolvingTo(), ...codes.map(failing)]
    const told = rules.map(async (one) =>
      send('https://shop.example/', one).then(
        () => 'sent',
        ({ code, message }) => ({ code, message }),
      ),
    )
    const own = ['https://10.20.30.40/', 'https://localhost/', 'https://intranet/'].map((url) =>
      send(url, strict).catch(({ code, message }) => ({ code, message })),
    )
    const all = await Promise.all([...told, ...own])
    expect(all[0]).toMatchObject({ code: 'webhook_url_refused' })
    for (const one of all) expect(one).toEqual(all[0])
    expect(JSON.stringify(all[0])).not.toMatch(/10\.20|shop\.example|ENOTFOUND/)
  })

  it('a resolver that never answers is given up in time', async () => {
    const rules = { ...strict, resolve: () => new Promise<never>(() => {}) }
    await expect(send('https://shop.example/', rules)).rejects.toThrow('within 300 ms')
  })
})

describe('DNS', () => {
  /** A server of names: A has one answer, AAAA another; what is called silent has none at all. */
  async function openNames(): Promise<string> {
    const server = createSocket('udp4')
    server.on('message', (query, { port, address }) => {
      if (query.includes('silent')) return
      const question = query.subarray(12, query.indexOf(0, 12) + 5)
      const isA = question.readUInt16BE(question.length - 4) === 1
      const data = isA
        ? Buffer.from([93, 184, 216, 34])
        : Buffer.from('fd000ec2000000000000000000000254', 'hex')
      const head = Buffer.from('000081800001000100000000', 'hex')
      query.copy(head, 0, 0, 2)
      const answer = Buffer.from([0xc0, 12, 0, isA ? 1 : 28, 0, 1, 0, 0, 0, 60, 0, data.length])
      server.send(Buffer.concat([head, question, answer, data]), port, address)
    })
    await new Promise<void>((resolve) => server.bind(0, '127.0.0.1', resolve))
    cleanUpLater(() => new Promise((resolve) => server.close(() => resolve())))
    return `127.0.0.1:${server.address().port}`
  }

  it('is asked for both families, and all that it answers is judged', async () => {
    const resolve = askDns([await openNames()])
    expect(await resolve('hooks.shop.example')).toEqual(['93.184.216.34', 'fd00:ec2::254'])
    const send = post(
      { url: 'https://hooks.shop.example./', headers: {}, body: Buffer.from(''), timeoutMs: 5_000 },
      { ...strict, resolve },
    )
    await expect(send).rejects.toEqual(refused)
  })

  it('that is silent about a few names keeps no other name waiting', async () => {
    const resolve = askDns([await openNames()])
    const silent = Array.from({ length: 8 }, (_, n) => resolve(`silent-${n}.example`).catch(() => 'in vain'))
    expect(await Promise.race([resolve('hooks.shop.example'), ...silent])).toHaveLength(2)
  })
})

describe('the connection goes to the address that was judged', () => {
  it('a socket is given these addresses and no others, one or all', () => {
    const lookup = pinnedLookup(['8.8.8.8', '2606:4700::1'])
    const answers: unknown[] = []
    lookup('rebound.example', { all: true }, (...given) => answers.push(given))
    lookup('rebound.example', {}, (...given) => answers.push(given))
    expect(answers).toEqual([
      [
        null,
        [
          { address: '8.8.8.8', family: 4 },
          { address: '2606:4700::1', family: 6 },
        ],
      ],
      [null, '8.8.8.8', 4],
    ])
  })

  it('a name is asked for once in an attempt, and again in the next: whatever it means later is judged then', async () => {
    const receiver = await openReceiver()
    const asked: string[] = []
    const desk = await openDesk({
      resolve: async (hostname) => {
        asked.push(hostname)
        return ['127.0.0.1']
      },
    })
    const url = receiver.url.replace('127.0.0.1', 'hooks.shop.example')
    const { endpoint } = await desk.hooks.endpoints.create({ account, url })
    await desk.send(1)
    expect(receiver.got[0]!.headers.host).toBe(new URL(url).host)
    expect(asked).toEqual(['hooks.shop.example'])
    await desk.hooks.replay({ account, endpoint: endpoint.id, message: receiver.ids()[0]! })
    await desk.deliver()
    expect(asked).toHaveLength(2)
  })

  it('a name that was public when the endpoint was made and is private now reaches nobody', async () => {
    const receiver = await openReceiver()
    const desk = await openDesk({ allowPrivate: false, resolve: async () => ['127.0.0.1'] })
    const { port } = new URL(receiver.url)
    await desk.hooks.endpoints.create({ account, url: `https://rebound.example:${port}/hooks` })
    await desk.send(1)
    const { items } = await desk.hooks.deliveries.list({ account })
    expect(items).toMatchObject([
      { state: 'pending', status: null, failure: { code: 'webhook_url_refused' } },
    ])
    // One that was made while private addresses were allowed is judged by today's rules.
    await desk.shop.observer.query('UPDATE onlyonce.webhook_endpoints SET url = $1', [receiver.url])
    await desk.hurry()
    await desk.deliver()
    expect((await desk.hooks.deliveries.list({ account })).items).toMatchObject([
      { attempts: 2, state: 'pending' },
    ])
    expect(receiver.got).toEqual([])
    const create = (url: string) => desk.hooks.endpoints.create({ account, url })
    await expect(create(receiver.url)).rejects.toEqual(refused)
    await expect(create('https://[::ffff:127.0.0.1]/')).rejects.toEqual(refused)
  })
})
