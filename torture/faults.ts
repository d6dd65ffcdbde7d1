import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from 'onlyonce/testing'
import { LINK_FAULTS } from './link-faults.ts'
import type { Program } from './process.ts'
import type { Site } from './site.ts'
import { STORAGE_FAULTS } from './storage-faults.ts'

/** One way to hurt the site. Everything that is chosen is chosen from `random`. */
export interface TortureFault {
  readonly name: string
  /** Chooses what is hurt; nothing has happened yet. */
  aim(site: Site, random: Random): Aim
}

export interface Aim {
  /** What is hurt, by name. Two faults of one thing at once would undo each other's healing. */
  readonly things: readonly string[]
  /** Strikes, lasts for a while that the seed decides, and heals. */
  strike(): Promise<void>
}

/** Every fault by name. `--faults` takes these names. */
export const FAULTS: readonly TortureFault[] = [
  ...endings('server', (site) => site.servers),
  ...endings('worker', (site) => site.workers),
  ...endings('processor', (site) => [site.processor]),
  ...STORAGE_FAULTS,
  {
    name: 'upgrade',
    aim(site, random) {
      const program = random.pick([...site.servers, ...site.workers])
      return {
        things: [program.name],
        async strike() {
          await program.end('SIGTERM')
          site.setVersion(program, random.pick(['present', 'earlier'] as const))
          await program.start()
        },
      }
    },
  },
  ...LINK_FAULTS,
  {
    name: 'clock_jump',
    aim(site, random) {
      const program = random.pick([...site.servers, ...site.workers])
      const offsetS = random.pick([-86_400 * 3, -3_600, -120, -30, 30, 120, 3_600, 86_400 * 3])
      return {
        things: [`the clock of ${program.name}`],
        async strike() {
          site.setClock(program, offsetS)
          await sleep(1_500 + random.integer(4_000))
          site.setClock(program, 0)
        },
      }
    },
  },
  ...[
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
  ].map(misbehaviour),
  ...['webhook_lost', 'webhook_doubled', 'webhook_reordered', 'webhook_late'].map(lateWebhooks),
]

/** The processor shows one of its own faults for a while. */
function misbehaviour(fault: string): TortureFault {
  const deadly = fault.startsWith('kill_')
  return {
    name: `processor_${fault}`,
    aim: (site, random) => ({
      // One that dies takes the other faults with it, so it has the processor for itself.
      things: [`processor ${fault}`, ...(deadly ? [site.processor.name] : [])],
      async strike() {
        const over = deadly ? site.processor.allowEnd() : null
        const heal = await site.misbehave({
          fault,
          rate: 0.3 + random.next() * 0.7,
          ms: 200 + random.integer(3_000),
        })
        await sleep(500 + random.integer(2_500))
        await heal()
        over?.()
        await site.processor.start()
      },
    }),
  }
}

function lateWebhooks(fault: string): TortureFault {
  return {
    name: fault,
    aim: (site, random) => ({
      things: [fault],
      async strike() {
        const heal = await site.misbehave({ fault, rate: 0.5, ms: 1_000 + random.integer(5_000) })
        const accept = site.sink.refuse(0.5)
        await sleep(500 + random.integer(2_500))
        accept()
        await heal()
      },
    }),
  }
}

/** A program is killed, stopped and drained. */
function endings(name: string, of: (site: Site) => readonly Program[]): TortureFault[] {
  const one = (end: string, hurt: (program: Program, random: Random) => Promise<void>): TortureFault => ({
    name: `${name}_${end}`,
    aim(site, random) {
      const program = random.pick(of(site))
      return { things: [program.name], strike: () => hurt(program, random) }
    },
  })
  return [
    one('kill', async (program, random) => {
      await program.end('SIGKILL')
      await sleep(random.integer(1_500))
      await program.start()
    }),
    one('stop', async (program, random) => {
      program.signal('SIGSTOP')
      // Longer than a lease and its grace, often: then others take over, and the sleeper wakes as a zombie.
      await sleep(500 + random.integer(7_000))
      program.signal('SIGCONT')
    }),
    one('term', async (program, random) => {
      await program.end('SIGTERM')
      await sleep(random.integer(800))
      await program.start()
    }),
  ]
}
