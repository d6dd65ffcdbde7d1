import { setTimeout as sleep } from 'node:timers/promises'
import type { Fault, FaultProxy, Random } from 'onlyonce/testing'
import type { TortureFault } from './faults.ts'
import type { Site } from './site.ts'

type Link = readonly [name: string, of: (site: Site) => readonly FaultProxy[]]

const DATABASE: Link = ['database_link', (site) => site.toDatabase]

/** What a message of the protocols on these links is long at most, nearly always: a cut falls on any byte of it. */
const MESSAGE_BYTES = 4_000

const KINDS: readonly (readonly [kind: string, make: (random: Random) => Fault])[] = [
  ['reset', (random) => ({ kind: 'reset', afterBytes: random.integer(MESSAGE_BYTES), rate: 0.7 })],
  ['refuse', () => ({ kind: 'refuse', rate: 0.8 })],
  ['slow', (random) => ({ kind: 'delay', delayMs: 20 + random.integer(400), jitterMs: 200 })],
  [
    'truncate',
    (random) => ({
      kind: 'truncate',
      afterBytes: random.integer(MESSAGE_BYTES),
      direction: random.pick(['to_server', 'to_client'] as const),
      rate: 0.7,
    }),
  ],
  [
    'half_closed',
    (random) => ({
      kind: 'half_close',
      afterBytes: random.integer(MESSAGE_BYTES),
      direction: random.pick(['to_server', 'to_client'] as const),
      rate: 0.7,
    }),
  ],
  ['deaf', () => ({ kind: 'black_hole', direction: 'to_server', rate: 0.7 })],
  ['mute', () => ({ kind: 'black_hole', direction: 'to_client', rate: 0.7 })],
  ['silent', () => ({ kind: 'black_hole', direction: 'both', rate: 0.7 })],
]

/** What happens to links: from clients to servers, from the service to its database and to the processor. */
export const LINK_FAULTS: readonly TortureFault[] = [
  DATABASE,
  ['processor_link', (site) => site.toProcessor] satisfies Link,
  ['client_link', (site) => site.front] satisfies Link,
]
  .flatMap(([name, of]) => KINDS.map(([kind, make]) => onLinks(`${name}_${kind}`, [name, of], make, 3_000)))
  .concat(
    (['before', 'within', 'after'] as const).map((when) =>
      onLinks(`commit_cut_${when}`, DATABASE, () => ({ kind: 'cut_at_commit', when, rate: 0.3 }), 2_500),
    ),
  )

function onLinks(
  name: string,
  [link, of]: Link,
  make: (random: Random) => Fault,
  lastsMaxMs: number,
): TortureFault {
  return {
    name,
    aim(site, random) {
      const all = of(site)
      const proxies = some(all, random)
      return {
        things: proxies.map((proxy) => `${link} ${all.indexOf(proxy)}`),
        async strike() {
          // Each link at a byte of its own.
          for (const proxy of proxies) proxy.setFault(make(random))
          await sleep(300 + random.integer(lastsMaxMs))
          for (const proxy of proxies) heal(proxy, random)
        },
      }
    },
  }
}

/**
 * Of the links that fell silent, half stay so until somebody gives up; the others are reset, as by a host that came back
 * with all its state lost.
 */
function heal(proxy: FaultProxy, random: Random): void {
  if (random.chance(0.5) && proxy.connections.some(({ state }) => state === 'black_holed'))
    proxy.setFault({ kind: 'reset' })
  proxy.setFault(null)
}

/** About half of a list, and at least one. */
function some<T>(list: readonly T[], random: Random): readonly T[] {
  const chosen = list.filter(() => random.chance(0.5))
  return chosen.length > 0 ? chosen : [random.pick(list)]
}
