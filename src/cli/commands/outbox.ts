import { LIMITS } from '../../core/limits.ts'
import type { Page } from '../../core/page.ts'
import { outbox } from '../../outbox/index.ts'
import type { Parked } from '../../store/outbox.ts'
import type { Command } from '../command.ts'
import { EXIT, usage } from '../exit.ts'
import { withOnce } from '../open.ts'
import { table } from '../table.ts'
import { showDuration } from '../times.ts'

export const OUTBOX_LAG: Command = {
  name: 'outbox lag',
  summary: 'Tells how far every destination of the outbox is behind.',
  takes: [],
  about: ['With --older-than the exit code is 1 where a destination has not got an event of that age.'],
  options: [{ name: 'older-than', value: '<duration>', text: 'Which lag is too much.' }],
  examples: ['onlyonce outbox lag', 'onlyonce outbox lag --older-than 5m'],
  async run(call) {
    const tooOldMs = call.values.durationMs('older-than') ?? Number.POSITIVE_INFINITY
    const lags = await withOnce(call, ({ once }) => outbox(once).lag())
    call.output.print(lags, () =>
      lags.length === 0
        ? 'No relay has a destination here.\n'
        : table(
            ['destination', 'waiting', 'oldest', 'parked'],
            lags.map((lag) => [
              lag.destination,
              `${lag.count}`,
              lag.count === 0 ? '' : showDuration(lag.oldestAgeMs),
              `${lag.parked}`,
            ]),
          ),
    )
    return lags.some(({ count, oldestAgeMs }) => count > 0 && oldestAgeMs >= tooOldMs) ? EXIT.found : EXIT.ok
  },
}

export const OUTBOX_PARKED: Command = {
  name: 'outbox parked',
  summary: 'Lists events and jobs that failed too often and are not tried any more.',
  takes: [],
  about: [],
  options: [
    {
      name: 'limit',
      value: '<number>',
      text: `Entries on one page, at most ${LIMITS.listMax}. Default: ${LIMITS.listDefault}.`,
    },
    { name: 'cursor', value: '<cursor>', text: 'Go on where another page ended.' },
  ],
  examples: ['onlyonce outbox parked'],
  async run(call) {
    const options = { limit: call.values.whole('limit'), cursor: call.values.text('cursor') }
    const page = await withOnce(call, ({ once }) => outbox(once).parked(options))
    call.output.print(page, () =>
      page.items.length === 0
        ? 'Nothing is parked.\n'
        : table(
            ['account', 'id', 'name', 'destination', 'failure'],
            page.items.map(({ account, id, name, destination, failure }) => [
              account,
              id,
              name,
              destination ?? '(a job)',
              `${failure.code}: ${failure.message}`,
            ]),
          ),
    )
    if (page.cursor !== null) call.output.note(`There are more: --cursor ${page.cursor}`)
    return EXIT.ok
  },
}

export const OUTBOX_REPLAY: Command = {
  name: 'outbox replay',
  summary: 'Tries parked events and jobs again.',
  takes: ['[account]', '[id]'],
  about: [
    'One of them by its account and id, as `outbox parked` shows them, or all with --all. A relay of the service delivers them; an event comes out of the order of its aggregate then. The exit code is 1 where nothing is parked under this id.',
  ],
  options: [{ name: 'all', text: 'Try everything again that is parked now.' }],
  examples: ['onlyonce outbox replay acct_1 evt_0192f0c1-…', 'onlyonce outbox replay --all'],
  async run(call) {
    const [account, id] = call.given
    const all = call.values.has('all')
    if (all === (account !== undefined) || (!all && id === undefined)) {
      throw usage('Give the account and the id of what is parked, or --all.')
    }
    const replayed = await withOnce(call, async ({ once }) => {
      const box = outbox(once)
      if (!all) return (await box.retryParked({ account: account!, id: id! })) ? 1 : 0
      let count = 0
      let cursor: string | null = null
      do {
        const page: Page<Parked> = await box.parked({ limit: LIMITS.listMax, cursor })
        for (const one of page.items) {
          if (call.io.signal.aborted) return count
          if (await box.retryParked(one)) count += 1
        }
        cursor = page.cursor
      } while (cursor !== null)
      return count
    })
    call.output.print({ replayed }, () => `${replayed} of them are tried again.\n`)
    return replayed === 0 && !all ? EXIT.found : EXIT.ok
  },
}
