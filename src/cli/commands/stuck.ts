import { LIMITS } from '../../core/limits.ts'
import type { Command } from '../command.ts'
import { EXIT } from '../exit.ts'
import { withOnce } from '../open.ts'
import { table } from '../table.ts'
import { showDuration } from '../times.ts'

export const STUCK: Command = {
  name: 'stuck',
  summary: 'Counts records that have been unfinished for too long.',
  takes: [],
  about: ['The exit code is 1 where there are any, so that a monitor can run it.'],
  options: [
    {
      name: 'older-than',
      value: '<duration>',
      text: `From which age on a record counts. Default: ${showDuration(LIMITS.stuckAfterMs)}.`,
    },
  ],
  examples: ['onlyonce stuck', 'onlyonce stuck --older-than 10m --json'],
  async run(call) {
    const olderThanMs = call.values.durationMs('older-than') ?? LIMITS.stuckAfterMs
    const stuck = await withOnce(call, ({ once }) => once.stuck({ olderThanMs }))
    const counted = Object.entries(stuck)
    call.output.print(stuck, () =>
      table(
        ['state', 'count', 'oldest'],
        counted.map(([state, { count, oldestAgeMs }]) => [
          state,
          `${count}`,
          count === 0 ? '' : showDuration(oldestAgeMs),
        ]),
      ),
    )
    return counted.every(([, { count }]) => count === 0) ? EXIT.ok : EXIT.found
  },
}
