import type { Queryable } from 'onlyonce'
import { type ParsedKey, parseApiKey } from './api-key.ts'
import { INSERT_ACCOUNT, INSERT_KNOWN_KEY } from './sql.ts'

/** For trying things out: everybody knows this key. It is made only where the configuration asks for it. */
export const DEMO_ACCOUNT_ID = 'acct_00000000000070008000000000000001'
export const DEMO_API_KEY = `sk_test_${DEMO_ACCOUNT_ID}_DemoKeyForDevelopmentOnly000000000000000000`
const DEMO_KEY_ID = 'key_00000000000070008000000000000001'

const { secret_hash: DEMO_SECRET } = parseApiKey(DEMO_API_KEY)!

/** Of either mode. */
export function isDemoKey({ account_id, secret_hash }: ParsedKey): boolean {
  return account_id === DEMO_ACCOUNT_ID && secret_hash.equals(DEMO_SECRET)
}

/** Makes the demo account where it is missing. A demo key that was revoked stays so. */
export async function ensureDemoAccount(db: Queryable): Promise<void> {
  const { account, secret_hash } = parseApiKey(DEMO_API_KEY)!
  await db.query(INSERT_ACCOUNT, [DEMO_ACCOUNT_ID, 'Demo'])
  await db.query(INSERT_KNOWN_KEY, [account, DEMO_KEY_ID, secret_hash, DEMO_API_KEY.slice(-4)])
}
