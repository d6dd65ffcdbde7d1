import { expect, test } from 'vitest'
import { beginCaller, catchError, makeCall, openShop, type Shop } from './shop.ts'

const KEY = 'reply-key-a-0123456789-0123456789-0123456789'
const CANARIES = ['4242424242424242', 'an ordinary secret']

/** Every row of every table of the schema, as text; bytes are hexadecimal there, whatever the session says. */
async function readEverything(shop: Shop): Promise<string> {
  const { rows: tables } = await shop.observer.query<{ name: string }>(
    `SELECT quote_ident(schemaname) || '.' || quote_ident(tablename) AS name
     FROM pg_tables WHERE schemaname = 'onlyonce'`,
  )
  expect(tables.map(({ name }) => name)).toContain('onlyonce.attempts')
  await shop.observer.query(`SET bytea_output = 'hex'`)
  let text = ''
  for (const { name } of tables) {
    const { rows } = await shop.observer.query<{ row: string }>(`SELECT t::text AS row FROM ${name} AS t`)
    text += rows.map(({ row }) => row).join('\n')
  }
  return text
}

function found(text: string): string[] {
  return CANARIES.filter((canary) => {
    const bytes = Buffer.from(canary)
    return [canary, bytes.toString('hex'), bytes.toString('base64')].some((form) => text.includes(form))
  })
}

/** Leaves replies with canaries by every way there is, after failures that leave a history. */
async function leaveCanaries(shop: Shop, encryption?: string): Promise<void> {
  const once = shop.open(encryption === undefined ? {} : { encryption })
  const value = { card: CANARIES[0], text: CANARIES[1] }
  const [first, second, third, fourth] = [makeCall(), makeCall(), makeCall(), makeCall()]
  const failure = Object.assign(new Error(`declined ${CANARIES[0]}`), { code: `card_${CANARIES[0]}` })
  await catchError(once.transaction(first, () => Promise.reject(failure)))
  await once.transaction(first, async () => value)
  const client = await beginCaller(shop)
  await once.within(client, second, async () => value)
  await client.query('COMMIT')
  await once.execute(third, async () => value)
  await catchError(once.execute(fourth, () => Promise.reject(new Error(`it said: ${CANARIES[1]}`))))
  for (const call of [first, second, third]) {
    expect(await once.execute(call, async () => 0)).toEqual({ outcome: 'replayed', value })
  }
}

test('nothing of a sealed reply is in any column of any table', async () => {
  const shop = await openShop()
  await leaveCanaries(shop, KEY)
  expect(found(await readEverything(shop))).toEqual([])
})

test('the search finds what is not sealed', async () => {
  const shop = await openShop()
  await leaveCanaries(shop)
  expect(found(await readEverything(shop))).toEqual(CANARIES)
})
