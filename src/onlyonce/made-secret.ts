/** What stands in for a secret that was not given: it is made at the first start, and kept by the store. */
import { randomBytes } from 'node:crypto'
import { OnlyonceError } from '../core/errors.ts'
import { KeyRing, keyRing } from '../core/ring.ts'
import type { MadeKey, MadeSecret } from '../store/contract.ts'
import type { OnlyonceOptions } from './door.ts'
import type { Requests } from './requests.ts'

/** However it is spelt: a mistake here would put a secret beside what it protects. */
export function inProduction(): boolean {
  return /^\s*prod(?:uction)?\s*$/i.test(process.env.NODE_ENV ?? '')
}

/** The ring of the secret that was given. Empty where there is none; then the store fills it. */
export function secretRing({
  secret,
  encryption,
}: Pick<OnlyonceOptions<unknown>, 'secret' | 'encryption'>): KeyRing {
  if (secret !== undefined) return keyRing(secret, 'fingerprint')
  if (inProduction()) refuse(`There is none, and NODE_ENV is production. ${HOW_TO}`)
  // A secret beside the sealed replies would tell what the requests were about.
  if (encryption !== undefined) refuse(`There is none, and replies are encrypted. ${HOW_TO}`)
  return new KeyRing('fingerprint', null, new Map())
}

const HOW_TO =
  "Make one with: node -p \"require('node:crypto').randomBytes(32).toString('base64url')\" and pass it as secret, for example from the environment variable ONLYONCE_SECRET."

/** What a store is told at a start, and what is checked and told after it. */
export function madeSecretFor(requests: Requests): MadeSecret & { readonly taken: () => void } {
  let lasting = false
  return {
    candidate: requests.hasOwnSecret ? null : (requests.made ?? makeKey()),
    take: (kept, { lasts }) => {
      lasting = lasts
      requests.learn(kept)
    },
    taken: () => {
      if (requests.lacksSecret) refuse(`There is none, and this store keeps none. ${HOW_TO}`)
      if (!requests.hasOwnSecret && lasting) process.emitWarning(WARNING, { type: 'OnlyonceSecretWarning' })
    },
  }
}

function makeKey(): MadeKey {
  return { keyId: `made_${randomBytes(8).toString('hex')}`, bytes: randomBytes(32) }
}

const WARNING = `onlyonce: no secret was given, so one was made and is kept in the database, where everyone who can read its tables can read it. Records that were made with it stay valid when you set another. ${HOW_TO}`

function refuse(detail: string): never {
  throw new OnlyonceError('secret_invalid', { detail })
}
