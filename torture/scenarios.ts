import { startPgBouncer } from '../test/setup/pgbouncer.ts'
import { FAULTS } from './faults.ts'
import { type Mix, USUAL_MIX } from './phones.ts'
import type { SiteOptions } from './site.ts'

/** A named run: which faults strike, and how the clients behave. */
export interface Scenario {
  readonly name: string
  readonly about: string
  readonly faults: readonly string[]
  readonly mix: Mix
  readonly phones: number
  /** How many faults strike at a time at most. */
  readonly lanes: number
  /** The longest pause between two faults. */
  readonly pauseMaxMs: number
  readonly site?: Pick<SiteOptions, 'settings' | 'pooler' | 'poolSize' | 'withEarlier'>
}

const names = (...patterns: RegExp[]) =>
  FAULTS.map(({ name }) => name).filter((name) => patterns.some((pattern) => pattern.test(name)))

const usual = { mix: USUAL_MIX, phones: 32, lanes: 4, pauseMaxMs: 1_500 }

export const SCENARIOS: readonly Scenario[] = [
  {
    ...usual,
    name: 'servers',
    about: 'API servers are killed, stopped past their leases, and drained',
    faults: names(/^server_/),
  },
  {
    ...usual,
    name: 'workers',
    about: 'workers are killed, stopped past their leases, and drained',
    faults: names(/^worker_/),
  },
  {
    ...usual,
    name: 'processor',
    about: 'the processor is killed, stopped and drained',
    faults: names(/^processor_(?:kill|stop|term)$/),
  },
  {
    ...usual,
    name: 'postgres',
    about: 'PostgreSQL is killed and stopped, and its sessions are ended in storms',
    faults: names(/^postgres_|^backends_/),
    lanes: 2,
    pauseMaxMs: 3_000,
  },
  {
    ...usual,
    name: 'storage',
    about:
      'the disks for data and for the log are full, the database is read-only, statements fail by SQLSTATE',
    faults: names(/^disk_|^read_only|^sqlstate_/),
    lanes: 2,
    pauseMaxMs: 2_500,
  },
  {
    ...usual,
    name: 'links',
    about:
      'links are cut, refused, slow, truncated at any byte, half-closed, and silent in one direction or both',
    faults: names(/_link_/),
    phones: 64,
  },
  {
    ...usual,
    name: 'commits',
    about: 'COMMIT is cut off before, within and after',
    faults: names(/^commit_cut_/),
    pauseMaxMs: 500,
  },
  {
    ...usual,
    name: 'clocks',
    about: 'the clock of one process jumps by minutes and days',
    faults: names(/^clock_/),
    pauseMaxMs: 500,
  },
  {
    ...usual,
    name: 'answers',
    about: 'the processor misbehaves in every way that it knows',
    faults: names(/^processor_(?!kill$|stop$|term$)/).filter((name) => !name.includes('_link_')),
    pauseMaxMs: 500,
  },
  {
    ...usual,
    name: 'webhooks',
    about: 'webhooks are lost, doubled, reordered and late, in and out',
    faults: names(/^webhook_/),
    pauseMaxMs: 500,
  },
  {
    ...usual,
    name: 'herd',
    about: 'two hundred clients send one key at once',
    faults: names(/^server_kill|^database_link_reset|^processor_delay_after/),
    mix: { ...USUAL_MIX, herd: 0.3, herdSize: 200 },
    phones: 12,
  },
  {
    ...usual,
    name: 'serializable',
    about: 'every transaction is serializable, and collides',
    faults: names(/^sqlstate_40001|^commit_cut_/),
    site: { settings: { default_transaction_isolation: 'serializable' } },
  },
  {
    ...usual,
    name: 'races',
    about: 'captures, refunds and cancellations of one payment race each other',
    faults: names(/^processor_delay_|^server_kill|^worker_kill/),
    mix: { ...USUAL_MIX, manual: 0.95, refund: 0.95, transfer: 0 },
  },
  {
    ...usual,
    name: 'sagas',
    about: 'transfers are broken at each step',
    faults: names(/^commit_cut_|^server_kill|^worker_kill|^backends_|^sqlstate_/),
    mix: { ...USUAL_MIX, transfer: 0.7 },
  },
  {
    ...usual,
    name: 'pgbouncer',
    about: 'behind PgBouncer in transaction mode, with two connections for everyone',
    faults: names(/^server_kill|^worker_kill|^commit_cut_|^database_link_reset/),
    phones: 16,
    site: {
      pooler: async (url) => {
        const bouncer = await startPgBouncer(url)
        return { url: bouncer.url(url), stop: () => bouncer.stop() }
      },
    },
  },
  {
    ...usual,
    name: 'upgrade',
    about: 'two versions of the service run side by side and take over from each other',
    faults: names(/^upgrade|^server_kill|^worker_kill/),
    pauseMaxMs: 500,
    site: { withEarlier: true },
  },
  {
    ...usual,
    name: 'everything',
    about: 'all faults, in any order',
    // The earlier version has defects that were repaired since: it runs in a scenario of its own.
    faults: names(/^(?!upgrade$)/),
    pauseMaxMs: 800,
  },
]
