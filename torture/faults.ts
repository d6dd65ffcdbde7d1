import { setTimeout as sleep } from 'node:timers/promises'
import type { Fault, FaultProxy, Random } from 'onlyonce/testing'
import type { Program } from './process.ts'
import type { Site } from './site.ts'

/**
 * One way to hurt the site: strikes, lasts for a while that the seed decides, and is healed. Everything that is
 * chosen is chosen from `random`.
 */
export interface TortureFault {
  readonly name: string
  strike(site: Site, random: Random): Promise<void>
}

/** Every fault by name. `--faults` takes these names. */
export const FAULTS: readonly TortureFault[] = [
  ...endings('server', (site) => site.servers),
  ...endings('worker', (site) => site.workers),
  ...endings('processor', (site) => [site.processor]),
  {
    name: 'postgres_kill',
    async strike({ database }, random) {
      await database.kill()
      await sleep(random.integer(3_000))
      await database.start()
    },
  },
  {
    name: 'postgres_stop',
    async strike({ database }, random) {
      database.signal('SIGSTOP')
      await sleep(1_000 + random.integer(11_000))
      database.signal('SIGCONT')
    },
  },
  {
    name: 'backends_ended',
    async strike({ database }, random) {
      for (let storm = 1 + random.integer(6); storm > 0; storm -= 1) {
        await database
          .query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'",
          )
          .catch(() => {})
        await sleep(random.integer(400))
      }
    },
  },
  {
    name: 'disk_full',
    async strike({ database }, random) {
      database.fillDisk()
      await sleep(500 + random.integer(4_000))
      database.freeDisk()
      // A server that could not write its log has ended itself.
      await database.query('SELECT 1').catch(() => database.start())
    },
  },
  {
    name: 'read_only',
    async strike({ database }, random) {
      await setting(database, 'default_transaction_read_only', 'on')
      await sleep(500 + random.integer(4_000))
      await setting(database, 'default_transaction_read_only', null)
    },
  },
  ...['53200', '53100', '57014', '58030', '40001', 'XX000'].map((code) => raised(code)),
  {
    name: 'upgrade',
    async strike(site, random) {
      const program = random.pick([...site.servers, ...site.workers])
      await program.end('SIGTERM')
      site.setVersion(program, random.pick(['present', 'earlier'] as const))
      await program.start()
    },
  },
  ...links('database_link', (site) => site.to_database),
  ...links('processor_link', (site) => site.to_processor),
  ...links('client_link', (site) => site.front),
  ...(['before', 'within', 'after'] as const).map((when) => ({
    name: `commit_cut_${when}`,
    async strike({ to_database }: Site, random: Random) {
      const proxies = some(to_database, random)
      for (const proxy of proxies) proxy.setFault({ kind: 'cut_at_commit', when, rate: 0.3 })
      await sleep(500 + random.integer(3_000))
      for (const proxy of proxies) proxy.setFault(null)
    },
  })),
  {
    name: 'clock_jump',
    async strike(site, random) {
      const program = random.pick([...site.servers, ...site.workers])
      const offset_s = random.pick([-86_400 * 3, -3_600, -120, -30, 30, 120, 3_600, 86_400 * 3])
      site.setClock(program, offset_s)
      await sleep(1_000 + random.integer(6_000))
      site.setClock(program, 0)
    },
  },
  ...PROCESSOR_FAULTS().map((fault) => ({
    name: `processor_${fault}`,
    async strike(site: Site, random: Random) {
      const ms = 200 + random.integer(3_000)
      await site.command('POST', 'faults', { fault, rate: 0.3 + random.next() * 0.7, ms })
      await sleep(500 + random.integer(3_000))
      await site.command('DELETE', 'faults')
      // One that was told to die has died; what was held goes on.
      await site.command('POST', 'release', {})
      if (!site.processor.alive) await site.processor.start()
    },
  })),
  ...['webhook_lost', 'webhook_doubled', 'webhook_reordered', 'webhook_late'].map((fault) => ({
    name: fault,
    async strike(site: Site, random: Random) {
      await site.command('POST', 'faults', { fault, rate: 0.5, ms: 1_000 + random.integer(5_000) })
      site.sink.refuse_rate = 0.5
      await sleep(1_000 + random.integer(3_000))
      await site.command('DELETE', 'faults')
      site.sink.refuse_rate = 0
    },
  })),
]

function PROCESSOR_FAULTS(): readonly string[] {
  return [
    'lose_before',
    'reset_before',
    'error_before',
    'busy',
    'delay_before',
    'error_instead',
    'kill_before_journal',
    'kill_within_journal',
    'kill_after_journal',
    'error_after',
    'lag',
    'delay_after',
    'lose_after',
    'reset_after',
    'truncate',
    'cut',
    'html',
    'html_ok',
    'wrong_amount',
    'wrong_currency',
  ]
}

function endings(name: string, of: (site: Site) => readonly Program[]): TortureFault[] {
  return [
    {
      name: `${name}_kill`,
      async strike(site, random) {
        const program = random.pick(of(site))
        await program.end('SIGKILL')
        await sleep(random.integer(2_000))
        await program.start()
      },
    },
    {
      name: `${name}_stop`,
      async strike(site, random) {
        const program = random.pick(of(site))
        program.signal('SIGSTOP')
        // Longer than a lease and its grace, often: then others take over, and the sleeper wakes as a zombie.
        await sleep(500 + random.integer(8_000))
        program.signal('SIGCONT')
      },
    },
    {
      name: `${name}_term`,
      async strike(site, random) {
        const program = random.pick(of(site))
        await program.end('SIGTERM')
        await sleep(random.integer(1_000))
        await program.start()
      },
    },
  ]
}

function links(name: string, of: (site: Site) => readonly FaultProxy[]): TortureFault[] {
  const kinds: readonly (readonly [string, (random: Random) => Fault])[] = [
    ['reset', (random) => ({ kind: 'reset', after_bytes: random.integer(4_000), rate: 0.7 })],
    ['refuse', () => ({ kind: 'refuse', rate: 0.8 })],
    ['slow', (random) => ({ kind: 'delay', delay_ms: 20 + random.integer(400), jitter_ms: 200 })],
    ['truncate', (random) => ({ kind: 'truncate', after_bytes: random.integer(3_000), rate: 0.7 })],
    ['deaf', () => ({ kind: 'black_hole', direction: 'to_server', rate: 0.7 })],
    ['mute', () => ({ kind: 'black_hole', direction: 'to_client', rate: 0.7 })],
    ['silent', () => ({ kind: 'black_hole', direction: 'both', rate: 0.7 })],
  ]
  return kinds.map(([kind, make]) => ({
    name: `${name}_${kind}`,
    async strike(site, random) {
      const proxies = some(of(site), random)
      const fault = make(random)
      for (const proxy of proxies) proxy.setFault(fault)
      await sleep(500 + random.integer(4_000))
      for (const proxy of proxies) {
        proxy.setFault(null)
        // What fell silent stays so until somebody gives up: as a host that came back with all its state lost would do.
        if (fault.kind === 'black_hole' && random.chance(0.5)) proxy.setFault({ kind: 'reset' })
        proxy.setFault(null)
      }
    },
  }))
}

/** A trigger raises an error of this class for a while, in a share of all writes of the library's and the service's tables. */
function raised(code: string): TortureFault {
  return {
    name: `sqlstate_${code}`,
    async strike({ database }, random) {
      const tables = ['onlyonce.records', 'payments.payments', 'payments.ledger_transactions']
      const trouble = `
        CREATE OR REPLACE FUNCTION public.torture_${code}() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          IF random() < 0.3 THEN RAISE EXCEPTION 'raised by the torture' USING ERRCODE = '${code}'; END IF;
          RETURN NEW;
        END $$;`
      const add = tables.map(
        (table) => `CREATE OR REPLACE TRIGGER torture_${code} BEFORE INSERT OR UPDATE ON ${table}
          FOR EACH ROW EXECUTE FUNCTION public.torture_${code}();`,
      )
      await database.query(`SET lock_timeout = '2s'; ${trouble} ${add.join('\n')}`).catch(() => {})
      await sleep(500 + random.integer(3_000))
      for (const table of tables)
        await insist(() => database.query(`DROP TRIGGER IF EXISTS torture_${code} ON ${table}`))
    },
  }
}

/** A trouble that stays would be no fault of the service: heal until it is healed. */
async function insist(heal: () => Promise<unknown>): Promise<void> {
  for (let tries = 0; tries < 100; tries += 1) {
    try {
      await heal()
      return
    } catch {
      await sleep(200)
    }
  }
  throw new Error('The fault could not be healed.')
}

async function setting(database: Site['database'], name: string, value: string | null): Promise<void> {
  const change = value === null ? `ALTER SYSTEM RESET ${name}` : `ALTER SYSTEM SET ${name} = ${value}`
  // ALTER SYSTEM cannot stand in a transaction block, and so not beside another statement.
  await insist(() => database.query(`${change}`))
  await insist(() => database.query('SELECT pg_reload_conf()'))
}

function some<T>(list: readonly T[], random: Random): readonly T[] {
  const chosen = list.filter(() => random.chance(0.5))
  return chosen.length > 0 ? chosen : [random.pick(list)]
}
