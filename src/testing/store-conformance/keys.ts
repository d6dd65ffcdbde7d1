import assert from 'node:assert/strict'
import { OnlyonceError } from '../../core/errors.ts'
import {
  attemptOf,
  type Cases,
  claimOf,
  FAILURE,
  KEYS,
  LONG_MS,
  newId,
  reply,
  run,
  transact,
} from './shared.ts'

const [K1, K2] = KEYS.fingerprint
const [K8, K7] = KEYS.reply

export const KEY_RULES: Cases = {
  'starts again and again, also with more keys than any record names': async ({ store }) => {
    await store.start(KEYS)
    await store.start({ fingerprint: [...KEYS.fingerprint, 'unused'], reply: [...KEYS.reply, 'unused'] })
    await store.start(KEYS)
  },

  'refuses to start without the fingerprint key of a record, in every state that can be seen': async ({
    store,
  }) => {
    const onlyK1 = { ...KEYS, fingerprint: [K1] }
    await store.start({ ...KEYS, fingerprint: [K2, K1] })
    const id = newId()
    const refused = () => assert.rejects(store.start(onlyK1), (error) => names(error, K2))
    const first = await run(store, claimOf(id, { keyId: K2 }))
    await refused()
    await store.doubt(first, FAILURE)
    await refused()
    const other = newId()
    await store.release(await run(store, claimOf(other, { keyId: K2 })), FAILURE, LONG_MS)
    await refused()
    await store.start({ ...KEYS, fingerprint: [K1, K2] })
  },

  'starts without a fingerprint key that no record names any more': async ({ store }) => {
    await store.start({ ...KEYS, fingerprint: ['k3', K1, K2] })
    const id = newId()
    const without = { ...KEYS, fingerprint: [K1, K2] }
    await store.release(await run(store, claimOf(id, { keyId: 'k3' })), FAILURE, LONG_MS)
    await assert.rejects(store.start(without), (error) => names(error, 'k3'))
    // A request that runs again is fingerprinted anew, with the current key.
    await run(store, { ...claimOf(id), matches: () => true })
    await store.start(without)
    await store.start(without)
  },

  'refuses to start without the key that a stored reply is sealed with': async ({ store }) => {
    const sealed = { ...reply('{}'), sealedBy: K8 }
    const id = newId()
    await store.complete(await run(store, claimOf(id)), sealed, LONG_MS)
    await transact(store, attemptOf(newId()), async () => sealed)
    for (const reply of [[K7], []]) {
      await assert.rejects(store.start({ ...KEYS, reply }), (error) => names(error, K8))
    }
    await store.start({ ...KEYS, reply: [K7, K8] })
    const seen = await store.look(id)
    assert.deepEqual(seen?.record.state === 'completed' && seen.record.reply, sealed)
  },
}

function names(error: unknown, keyId: string): boolean {
  return (
    error instanceof OnlyonceError &&
    error.code === 'key_ring_incomplete' &&
    error.message.includes(JSON.stringify(keyId))
  )
}
