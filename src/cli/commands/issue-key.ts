import { LIMITS } from '../../core/limits.ts'
import type { KeyRing } from '../../core/ring.ts'
import { scopeOf } from '../../key/index.ts'
import { Issuer } from '../../onlyonce/issuer.ts'
import { keysInUse } from '../../store/postgres/survey.ts'
import { type Call, type Command, SECRET } from '../command.ts'
import { EXIT, usage } from '../exit.ts'
import { withOnce } from '../open.ts'
import { requireRing } from '../settings.ts'
import { showDuration, showTime } from '../times.ts'

export const ISSUE_KEY: Command = {
  name: 'issue-key',
  summary: 'Hands out a signed idempotency key for one action of an account.',
  takes: ['<account>', '<operation>'],
  about: [
    'It is signed with ONLYONCE_SECRET, and nothing is written. Where a database is named, the secret is compared with that of the service first: a key under another secret would be refused there.',
  ],
  options: [
    {
      name: 'expires-in',
      value: '<duration>',
      text: `How long the key may start something new. Default: ${showDuration(LIMITS.issuedKeyLifetimeMs)}.`,
    },
    SECRET,
  ],
  examples: ['onlyonce issue-key acct_1 payments.create --expires-in 15m'],
  async run(call) {
    const [account, operation] = call.given
    const ring = requireRing(call.settings.secret(), 'fingerprint')
    if (call.settings.databaseUrl !== null) await compare(call, ring)
    const issuer = new Issuer(ring, { clock: undefined, retentionMs: LIMITS.retentionMs })
    const issued = issuer.issue(scopeOf(account, operation), call.values.durationMs('expires-in'))
    call.output.print(issued, () => `${issued.key}\n`)
    call.output.note(`It expires at ${showTime(issued.expiresAt)}.`)
    return EXIT.ok
  },
}

async function compare(call: Call, ring: KeyRing): Promise<void> {
  const used = await withOnce(call, async ({ once, pool, schema }) => {
    await once.start()
    return await keysInUse(pool, schema)
  })
  const id = ring.currentId
  const listed = used.filter(({ purpose }) => purpose === 'fingerprint')
  const same = listed.find(({ keyId }) => keyId === id)
  if (same === undefined && listed.length > 0) {
    throw usage(
      `No process of the service has started with the secret ${JSON.stringify(id)} as its current one.`,
    )
  }
  if (same !== undefined && same.digest !== null && same.digest !== ring.digestOf(id)) {
    throw usage(`The secret ${JSON.stringify(id)} has other bytes here than in the service.`)
  }
}
