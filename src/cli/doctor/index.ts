import { type KeyPurpose, keyRing, type Secret } from '../../core/ring.ts'
import { type Call, type Command, ENCRYPTION, SECRET } from '../command.ts'
import { EXIT, usage } from '../exit.ts'
import { withStore } from '../open.ts'
import { plain } from '../table.ts'
import { collect, type Given } from './facts.ts'
import { type Finding, judgeAll, type Level } from './findings.ts'

export const DOCTOR: Command = {
  name: 'doctor',
  summary: 'Looks for what is wrong with the database, its settings and the rights of the role.',
  takes: [],
  about: [
    'Run it with the role of the service. It only reads. It looks at versions, rights, isolation, time-outs, durability, connections, the clock, poolers, indexes, bloat, stuck and expired records, and keys; each finding says what to do. The exit code is 1 where there is an error or a warning; notices do not count.',
  ],
  options: [
    { name: 'pool-size', value: '<number>', text: 'Connections in the pool of one process of the service.' },
    { name: 'processes', value: '<number>', text: 'How many such processes there are. Default: 1.' },
    { name: 'quiet', text: 'Leave out what is well.' },
    SECRET,
    ENCRYPTION,
  ],
  examples: ['onlyonce doctor', 'onlyonce doctor --pool-size 20 --processes 6 --json'],
  async run(call) {
    const given = givenOf(call)
    const findings = await withStore(call, async ({ store, pool, schema }) => {
      const client = await pool.connect()
      try {
        return judgeAll(await collect(client, store, schema, given))
      } finally {
        client.release()
      }
    })
    const shown = call.values.has('quiet') ? findings.filter(({ level }) => level !== 'ok') : findings
    call.output.print({ findings: shown }, () => forPeople(shown))
    return findings.some(({ level }) => level === 'error' || level === 'warning') ? EXIT.found : EXIT.ok
  },
}

function givenOf({ values, settings }: Call): Given {
  const poolSize = values.whole('pool-size') ?? null
  const processes = values.whole('processes') ?? 1
  if (poolSize === 0 || processes === 0) throw usage('--pool-size and --processes are at least 1.')
  const ringOf = (secret: Secret | null, purpose: KeyPurpose) =>
    secret === null ? null : keyRing(secret, purpose)
  return {
    pooler: settings.pooler,
    poolSize,
    processes,
    secret: ringOf(settings.secret(), 'fingerprint'),
    encryption: ringOf(settings.encryption(), 'reply'),
  }
}

const MARKS: Readonly<Record<Level, string>> = { error: 'ERROR', warning: 'WARN', notice: 'note', ok: 'ok' }

function forPeople(findings: readonly Finding[]): string {
  if (findings.length === 0) return 'Nothing is wrong.\n'
  const width = Math.max(...findings.map(({ about }) => about.length))
  return findings
    .map(({ level, about, found, advice }) => {
      const line = `${MARKS[level].padEnd(5)}  ${about.padEnd(width)}  ${plain(found)}\n`
      return advice === null ? line : `${line}${' '.repeat(9 + width)}-> ${plain(advice)}\n`
    })
    .join('')
}
