import type { Pool } from 'pg'
import { type KeyPurpose, type KeyRing, keyRing, type Secret } from '../../core/ring.ts'
import { type Resealed, resealAll } from '../../operator/reseal.ts'
import { countKeyUse, type KeyUse } from '../../store/postgres/rotation.ts'
import { type Call, type Command, ENCRYPTION, SECRET, YES } from '../command.ts'
import { EXIT, type ExitCode, usage } from '../exit.ts'
import { confirm } from '../io.ts'
import { requireSealing, withOnce } from '../open.ts'
import { Progress } from '../progress.ts'
import { requireRing } from '../settings.ts'
import { table } from '../table.ts'
import { showTime } from '../times.ts'

export const ROTATE: Command = {
  name: 'rotate',
  summary: 'Tells what still needs an old secret, and seals it anew.',
  takes: [],
  about: [
    'Without options it counts what names each key of `secret` and `encryption`; all of the tables are read. Where the rings are given, the exit code is 1 as long as something needs a key that is not current.',
    'With --reseal, what is sealed with an old encryption key is opened and sealed with the current one, in batches that each are a commit. Do it when all processes of the service have the new key, and it is current in all of them: a process without it cannot replay what was sealed anew. It can be ended at any time, and run again.',
    'Fingerprints cannot be made anew, because requests are not stored: an old key of `secret` is needed until the last record that names it is removed, and until the last key that it signed has expired.',
  ],
  options: [
    { name: 'reseal', text: 'Seal with the current encryption key what an old one has sealed.' },
    { name: 'plain', text: 'With --reseal: seal what was stored in the clear, too.' },
    SECRET,
    ENCRYPTION,
    YES,
  ],
  examples: ['onlyonce rotate', 'onlyonce rotate --reseal'],
  async run(call) {
    const { values, settings } = call
    if (values.has('plain') && !values.has('reseal')) throw usage('--plain goes with --reseal.')
    const rings: Rings = {
      fingerprint: ringOf(settings.secret(), 'fingerprint'),
      reply: values.has('reseal')
        ? requireRing(settings.encryption(), 'reply')
        : ringOf(settings.encryption(), 'reply'),
    }
    return await withOnce(call, async ({ once, pool, schema }) => {
      await once.start()
      const before = await countKeyUse(pool, schema)
      if (!values.has('reseal')) return tell(call, rings, before, null)
      await requireSealing(call, pool, schema)
      const resealed = await reseal(call, pool, schema, rings.reply!, before)
      return tell(call, rings, await countKeyUse(pool, schema), resealed)
    })
  },
}

type Rings = Readonly<Record<KeyPurpose, KeyRing | null>>

function ringOf(secret: Secret | null, purpose: KeyPurpose): KeyRing | null {
  return secret === null ? null : keyRing(secret, purpose)
}

async function reseal(
  call: Call,
  pool: Pool,
  schema: string,
  ring: KeyRing,
  used: readonly KeyUse[],
): Promise<Resealed> {
  const { io, output, values } = call
  const plain = values.has('plain')
  const due = used.filter(
    ({ purpose, keyId }) => purpose === 'reply' && keyId !== ring.currentId && (plain || keyId !== null),
  )
  const total = due.reduce((sum, { count }) => sum + count, 0)
  await confirm(
    io,
    values.has('yes'),
    `${total} pieces are sealed anew with the key ${JSON.stringify(ring.currentId)}.`,
  )
  const progress = new Progress(output, 'sealing', total)
  const resealed = await resealAll({
    pool,
    schema,
    ring,
    plain,
    signal: io.signal,
    onProgress: (count) => progress.add(count),
  })
  progress.end()
  return resealed
}

const OPTIONS: Readonly<Record<KeyPurpose, string>> = { fingerprint: 'secret', reply: 'encryption' }

function tell(call: Call, rings: Rings, used: readonly KeyUse[], resealed: Resealed | null): ExitCode {
  const keys = used
    .map(({ purpose, ...use }) => ({
      option: OPTIONS[purpose],
      current: isCurrent(rings[purpose], use.keyId),
      ...use,
    }))
    .sort((a, b) => a.option.localeCompare(b.option) || `${a.keyId}`.localeCompare(`${b.keyId}`))
  call.output.print({ keys, resealed }, () => forPeople(keys, resealed))
  const needed = keys.some(({ current, keyId }) => current === false && keyId !== null)
  const trouble = resealed !== null && (resealed.broken > 0 || Object.keys(resealed.missing).length > 0)
  return needed || trouble ? EXIT.found : EXIT.ok
}

/** Null where the ring is not given here, so that it cannot be told. */
function isCurrent(ring: KeyRing | null, keyId: string | null): boolean | null {
  return ring === null ? null : ring.currentId === keyId
}

type Told = Omit<KeyUse, 'purpose'> & { readonly option: string; readonly current: boolean | null }

function forPeople(keys: readonly Told[], resealed: Resealed | null): string {
  const rows = keys.map(({ option, keyId, current, what, count, unfinished, keptUntil }) => [
    option,
    keyId ?? '(plain)',
    current === null ? '?' : current ? 'yes' : 'no',
    `${count} ${what}`,
    unfinished === 0 ? '' : `${unfinished}`,
    showTime(keptUntil),
  ])
  const shown =
    rows.length === 0
      ? 'Nothing is stored.\n'
      : table(['option', 'key', 'current', 'needed by', 'unfinished', 'kept until'], rows)
  return resealed === null ? shown : `${shown}\n${outcomeOf(resealed)}`
}

function outcomeOf({ resealed, owned, changed, missing, broken, brokenNames }: Resealed): string {
  const lines = [`${resealed} pieces were sealed anew.`]
  if (owned > 0)
    lines.push(
      `${owned} operations are worked on: their owners clear what they stored when they end. Run this again later.`,
    )
  if (changed > 0) lines.push(`${changed} pieces were changed by another process meanwhile. Run this again.`)
  for (const [keyId, count] of Object.entries(missing)) {
    lines.push(
      `${count} pieces are sealed with the key ${JSON.stringify(keyId)}, which is not in the ring. Add it, and run this again.`,
    )
  }
  if (broken > 0)
    lines.push(
      `${broken} seals do not open with the key that they name: ${brokenNames.join('; ')}. What was in them is lost; see docs/guides/security.md.`,
    )
  return `${lines.join('\n')}\n`
}
