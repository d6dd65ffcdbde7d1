import type { ConnectionOptions } from 'node:tls'
import { beforeAll, describe, expect, test } from 'vitest'
import { onlyonce } from '../../src/index.ts'
import { migrate, postgres } from '../../src/store/postgres/index.ts'
import { certificateFor } from '../setup/certificate.ts'
import { startTlsFront } from '../setup/tls-front.ts'
import { catchError, makeCall, openShop, SECRET, type Shop } from './shop.ts'

let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

const DAY_MS = 86_400_000
const days = (count: number) => new Date(Date.now() + count * DAY_MS)
const SOUND = { name: 'localhost', address: '127.0.0.1', from: days(-2), until: days(2) }

/** A pool that asks for TLS, at a server with this certificate. It trusts the certificate unless it is told otherwise. */
async function poolAt(
  given: typeof SOUND | (Omit<typeof SOUND, 'address'> & { address: null }),
  trusted = true,
) {
  const certificate = certificateFor(given)
  const target = new URL(shop.database.serverUrl)
  const port = await startTlsFront(target, certificate)
  const url = new URL(shop.database.serverUrl)
  url.host = `127.0.0.1:${port}`
  const ssl: ConnectionOptions = { rejectUnauthorized: true, ...(trusted && { ca: certificate.cert }) }
  return shop.database.pool({ connectionString: url.href, ssl, max: 2 })
}

const CASES = {
  'is self-signed': [SOUND, false, /not trusted.*ssl\.ca.*\(DEPTH_ZERO_SELF_SIGNED_CERT\)/],
  'has expired': [{ ...SOUND, until: days(-1) }, true, /has expired.*\(CERT_HAS_EXPIRED\)/],
  'is not valid yet': [{ ...SOUND, from: days(1) }, true, /not valid yet.*\(CERT_NOT_YET_VALID\)/],
  'is for another host': [
    { ...SOUND, name: 'db.example.com', address: null },
    true,
    /for another host.*\(ERR_TLS_CERT_ALTNAME_INVALID\)/,
  ],
} as const

describe.each(Object.entries(CASES))(
  'a certificate of the database that %s',
  (_, [given, trusted, detail]) => {
    test('is told at the start by a sentence of its own, and not as something that passes', async () => {
      const pool = await poolAt(given, trusted)
      const once = onlyonce({ store: postgres({ pool }), secret: SECRET, observe: { signal() {} } })
      for (const told of [
        await catchError(once.start()),
        await catchError(once.transaction(makeCall(), async () => 1)),
        await catchError(migrate(pool, { schema: 'onlyonce', mode: 'verify' })),
      ]) {
        expect(told).toMatchObject({ code: 'store_misconfigured' })
        expect(told.message).toMatch(detail)
      }
    })
  },
)

test('a certificate that is trusted, in time and for this host is taken', async () => {
  const pool = await poolAt(SOUND)
  const once = onlyonce({ store: postgres({ pool }), secret: SECRET, background: false })
  expect((await once.execute(makeCall(), async () => 1)).outcome).toBe('executed')
  const { rows } = await pool.query('SELECT 1 AS one')
  expect(rows).toEqual([{ one: 1 }])
})
