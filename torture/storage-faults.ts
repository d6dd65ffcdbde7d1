import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from 'onlyonce/testing'
import type { TortureFault } from './faults.ts'
import { insist } from './heal.ts'
import type { Database } from './postgres.ts'

/** What happens to the database server itself, to its disks and within it. */
export const STORAGE_FAULTS: readonly TortureFault[] = [
  toServer('postgres_kill', async (database, random) => {
    await database.kill()
    await sleep(random.integer(2_000))
    await database.start()
  }),
  toServer('postgres_stop', async (database, random) => {
    database.signal('SIGSTOP')
    // Now and then for longer than a connection is waited for.
    await sleep(random.chance(0.2) ? 10_500 + random.integer(2_000) : 500 + random.integer(6_000))
    database.signal('SIGCONT')
  }),
  toServer('disk_data_full', async (database, random) => {
    database.fill('data')
    await sleep(500 + random.integer(3_000))
    database.empty('data')
    await revive(database)
  }),
  toServer('disk_wal_full', async (database, random) => {
    database.fill('wal')
    // A segment that is there is written to the end; only the next one finds the disk full.
    for (let tries = 2 + random.integer(6); tries > 0; tries -= 1) {
      await database.query('SELECT pg_switch_wal()').catch(() => {})
      await sleep(400)
    }
    database.empty('wal')
    await revive(database)
  }),
  toServer('read_only', async (database, random) => {
    await setting(database, 'default_transaction_read_only', 'on')
    await sleep(500 + random.integer(3_000))
    await setting(database, 'default_transaction_read_only', null)
  }),
  {
    name: 'backends_ended',
    aim: ({ database }, random) => ({
      things: ['backends'],
      async strike() {
        let struck = false
        for (let storm = 1 + random.integer(6); storm > 0; storm -= 1) {
          struck = (await succeeds(database.query(END_ALL))) || struck
          await sleep(random.integer(400))
        }
        if (!struck) throw new Error('The database was away.')
      },
    }),
  },
  ...['53200', '53100', '57014', '58030', '40001', 'XX000'].map(raised),
]

const END_ALL = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'`

function toServer(name: string, hurt: (database: Database, random: Random) => Promise<void>): TortureFault {
  return {
    name,
    aim: ({ database }, random) => ({ things: ['postgres'], strike: () => hurt(database, random) }),
  }
}

/** A server that could not write its log has ended itself, or recovers. */
async function revive(database: Database): Promise<void> {
  for (let tries = 0; tries < 20; tries += 1) {
    if (!database.alive) return await database.start()
    if (await succeeds(database.query('SELECT 1'))) return
    await sleep(300)
  }
  await database.start()
}

/**
 * Put in when a site is opened: a trigger on tables of the library and of the service. While the table names a code, a share
 * of all writes fails with it. A trigger that is made under load would deadlock with the service, and strike never.
 */
export const TROUBLES = `
  CREATE SCHEMA torture;
  CREATE TABLE torture.troubles (code text NOT NULL);
  CREATE FUNCTION torture.trouble() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    chosen text := (SELECT code FROM torture.troubles ORDER BY random() LIMIT 1);
  BEGIN
    IF chosen IS NOT NULL AND random() < 0.3 THEN
      RAISE EXCEPTION 'raised by the torture' USING ERRCODE = chosen;
    END IF;
    RETURN NEW;
  END $$;
  ${['onlyonce.records', 'payments.payments', 'payments.ledger_transactions']
    .map(
      (table) => `CREATE TRIGGER torture BEFORE INSERT OR UPDATE ON ${table}
        FOR EACH ROW EXECUTE FUNCTION torture.trouble();`,
    )
    .join('\n')}`

/** Writes fail with this code for a while. */
function raised(code: string): TortureFault {
  return {
    name: `sqlstate_${code}`,
    aim: ({ database }, random) => ({
      things: [`sqlstate ${code}`],
      async strike() {
        const struck = await succeeds(database.query(`INSERT INTO torture.troubles VALUES ('${code}')`))
        await sleep(500 + random.integer(2_500))
        await insist(() => database.query(`DELETE FROM torture.troubles WHERE code = '${code}'`))
        if (!struck) throw new Error('The database was away.')
      },
    }),
  }
}

function succeeds(work: Promise<unknown>): Promise<boolean> {
  return work.then(
    () => true,
    () => false,
  )
}

async function setting(database: Database, name: string, value: string | null): Promise<void> {
  const change = value === null ? `ALTER SYSTEM RESET ${name}` : `ALTER SYSTEM SET ${name} = ${value}`
  // ALTER SYSTEM cannot stand in a transaction block, and so not beside another statement.
  await insist(() => database.query(change))
  await insist(() => database.query('SELECT pg_reload_conf()'))
}
