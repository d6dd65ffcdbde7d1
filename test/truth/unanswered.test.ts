import { beforeAll, describe, expect, test } from 'vitest'
import { OnlyonceError } from '../../src/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { openShop, type Shop } from '../contract/shop.ts'
import { POOLER } from '../setup/pooler.ts'
import { type Journal, live } from './lives.ts'
import { MOMENTS } from './moments.ts'

let shop: Shop
beforeAll(async () => {
  shop = await openShop()
})

const away = { name: 'store_unavailable', make: () => new OnlyonceError('store_unavailable') }
const FOR_EVER = Number.POSITIVE_INFINITY

/** The store did what it was asked, and its answer never came: others may go on with it. */
describe('a store that does not answer any more', () => {
  test.each([
    ['operation: operations.claim after', 'outcome_unknown'],
    ['operation: operations.takeOver after, retryable_before', 'outcome_unknown'],
    ['operation: operations.begin after, atomic_first', 'outcome_unknown'],
    ['operation: operations.settleStep before, lost_step', 'outcome_unknown'],
    ['transaction: settle before, lost_step', 'outcome_unknown'],
    ['transaction: transact after', 'outcome_unknown'],
    ['handler: complete before', 'outcome_unknown'],
    // Nothing of the work has begun, and nobody goes on with a claim of a handler by himself.
    ['handler: claim before', 'store_unavailable'],
    ['transaction: look before', 'store_unavailable'],
    ['operation: look before', 'store_unavailable'],
  ])('%s: %s', async (name, code) => {
    const moment = MOMENTS.find((one) => one.name === name)!
    const store = postgres({ pool: shop.database.pool({ max: 4 }), pooler: POOLER })
    const journal: Journal = new Map()
    const { told } = await live(store, journal, moment, away, FOR_EVER)
    expect(told).toMatchObject({
      code,
      executed: code === 'outcome_unknown' ? 'unknown' : 'not_by_this_request',
    })
  })
})
