/** Accounts and their API keys: who may ask. */
import type { Queryable } from 'onlyonce'
import type { Mode } from '../gateway/index.ts'
import { makeId } from '../ids.ts'
import { makeApiKey, parseApiKey } from './api-key.ts'
import {
  FIND_ACCOUNT,
  INSERT_ACCOUNT,
  INSERT_KEY,
  LIST_ACCOUNTS,
  LIST_KEYS,
  REVOKE_KEY,
  UPDATE_ACCOUNT,
} from './sql.ts'

export { bearerOf, parseApiKey } from './api-key.ts'
export { type Authenticator, authenticate, authenticator, type Caller } from './authenticate.ts'
export { DEMO_ACCOUNT_ID, DEMO_API_KEY, ensureDemoAccount } from './demo.ts'

export interface Account {
  readonly id: string
  readonly name: string
  /** What becomes of a payment with the payer, amount and reference of another, where its request does not say so. */
  readonly duplicates: 'warn' | 'refuse'
  readonly created_at: Date
}

type AccountRow = Omit<Account, 'id'> & { readonly account: string }

function accountOf({ account, name, duplicates, created_at: createdAt }: AccountRow): Account {
  return { id: account.slice(0, account.indexOf(':')), name, duplicates, created_at: createdAt }
}

export interface ApiKey {
  readonly id: string
  readonly mode: Mode
  readonly last4: string
  readonly created_at: Date
  readonly revoked_at: Date | null
}

/** Of all keys of an account, the newest. Revoked ones are kept, and shown. */
const KEYS_SHOWN_MAX = 1_000

export async function createAccount(db: Queryable, name: string): Promise<Account> {
  const id = makeId('acct')
  const { rows } = await db.query(INSERT_ACCOUNT, [id, name])
  return accountOf(rows[0] as AccountRow)
}

/** Of both modes. Null where there is no such account. */
export async function updateAccount(
  db: Queryable,
  id: string,
  { name = null, duplicates = null }: { name?: string | null; duplicates?: Account['duplicates'] | null },
): Promise<Account | null> {
  const { rows } = await db.query(UPDATE_ACCOUNT, [id, name, duplicates])
  const [row] = rows as AccountRow[]
  return row === undefined ? null : accountOf(row)
}

/** The newest first, those behind `before`. */
export async function listAccounts(
  db: Queryable,
  before: string | null,
  limit: number,
): Promise<readonly Account[]> {
  const { rows } = await db.query(LIST_ACCOUNTS, [before, limit])
  return (rows as AccountRow[]).map(accountOf)
}

/** An account in one mode, such as `acct_…:test`; null where there is none. */
export async function findAccount(db: Queryable, account: string): Promise<Account | null> {
  const { rows } = await db.query(FIND_ACCOUNT, [account])
  const [row] = rows as AccountRow[]
  return row === undefined ? null : accountOf(row)
}

/** The key itself is told here and never again. Null where there is no such account. */
export async function createApiKey(
  db: Queryable,
  accountId: string,
  mode: Mode,
): Promise<(ApiKey & { readonly api_key: string }) | null> {
  const apiKey = makeApiKey(accountId, mode)
  const id = makeId('key')
  const last4 = apiKey.slice(-4)
  const { account, secretHash } = parseApiKey(apiKey)!
  const { rows } = await db.query(INSERT_KEY, [account, id, secretHash, last4])
  const [row] = rows as { created_at: Date }[]
  return row === undefined
    ? null
    : { id, mode, api_key: apiKey, last4, created_at: row.created_at, revoked_at: null }
}

/** Whoever uses the key from now on is a stranger. Null where the account has no such key. */
export async function revokeApiKey(
  db: Queryable,
  accountId: string,
  mode: Mode,
  id: string,
): Promise<ApiKey | null> {
  const { rows } = await db.query(REVOKE_KEY, [`${accountId}:${mode}`, id])
  const [row] = rows as Omit<ApiKey, 'mode'>[]
  return row === undefined ? null : { ...row, mode }
}

export async function listApiKeys(db: Queryable, accountId: string): Promise<ApiKey[]> {
  const { rows } = await db.query(LIST_KEYS, [[`${accountId}:test`, `${accountId}:live`], KEYS_SHOWN_MAX])
  return (rows as (Omit<ApiKey, 'mode'> & { account: string })[]).map(({ account, ...key }) => ({
    ...key,
    mode: account.endsWith(':live') ? 'live' : 'test',
  }))
}
