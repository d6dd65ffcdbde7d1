import type { Queryable } from 'onlyonce'
import { type ParsedKey, parseApiKey } from './api-key.ts'
import { INSERT_ACCOUNT, INSERT_KNOWN_KEY } from './sql.ts'

/** For trying things out: everybody knows this key. It is made only where the configuration asks for it. */
export const DEMO_ACCOUNT_ID = 'acct_00000000000070008000000000000001'
export const DEMO_API_KEY = `sk_test_${DEMO_ACCOUNT_ID}_DemoKeyForDevelopmentOnly000000000000000000`
const DEMO_KEY_ID = 'key_00000000000070008000000000000001'

const { secretHash: DEMO_SECRET } = parseApiKey(DEMO_API_KEY)!

/** Of either mode. */
export function isDemoKey({ accountId, secretHash }: ParsedKey): boolean {
  return accountId === DEMO_ACCOUNT_ID && secretHash.equals(DEMO_SECRET)
}

/** Makes the demo account where it is missing. A demo key that was revoked stays so. */
export async function ensureDemoAccount(db: Queryable): Promise<void> {
  const { account, secretHash } = parseApiKey(DEMO_API_KEY)!
  await db.query(INSERT_ACCOUNT, [DEMO_ACCOUNT_ID, 'Demo'])
  await db.query(INSERT_KNOWN_KEY, [account, DEMO_KEY_ID, secretHash, DEMO_API_KEY.slice(-4)])
}
