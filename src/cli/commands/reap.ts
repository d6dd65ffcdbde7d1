import { LIMITS } from '../../core/limits.ts'
import { engineOf } from '../../onlyonce/onlyonce.ts'
import { countReapable } from '../../store/postgres/survey.ts'
import { reaper } from '../../workers/index.ts'
import type { Command } from '../command.ts'
import { EXIT } from '../exit.ts'
import { withOnce } from '../open.ts'
import { Progress } from '../progress.ts'
import { showDuration } from '../times.ts'

export const REAP: Command = {
  name: 'reap',
  summary: 'Removes finished records after their retention.',
  takes: [],
  about: [
    'What every process of the service does in the background, for a service that does not, or for a table that has grown. Never removed: what is in progress, unknown or parked, of any age, and what has changed within the last ten minutes. It works in small batches; SIGINT ends it behind the present one.',
  ],
  options: [
    { name: 'dry-run', text: 'Only count what would be removed.' },
    {
      name: 'mode',
      value: '<mode>',
      choices: ['delete', 'expire'],
      text: 'delete removes a record and its history; expire keeps the row, without reply, input and errors. Default: delete.',
    },
  ],
  examples: ['onlyonce reap --dry-run', 'onlyonce reap'],
  async run(call) {
    const { values, output, io } = call
    const mode = (values.text('mode') ?? 'delete') as 'delete' | 'expire'
    return await withOnce(call, async ({ once, pool, schema }) => {
      await once.start()
      const keptMinMs = Math.max(LIMITS.finishedKeptMinMs, engineOf(once).store.doubtMaxMs)
      const found = await countReapable(pool, schema, keptMinMs)
      if (values.has('dry-run')) {
        const oldest = found.count === 0 ? '' : `, the oldest since ${showDuration(found.oldestAgeMs)}`
        output.print({ dryRun: true, ...found }, () => `${found.count} records would be removed${oldest}.\n`)
        return EXIT.ok
      }
      const progress = new Progress(output, 'removing', found.count)
      const worker = reaper(once, { mode })
      for (let more = true; more && !io.signal.aborted; ) {
        const ran = await worker.runOnce()
        progress.add(ran.done)
        more = ran.more
      }
      progress.end()
      output.print({ mode, removed: progress.done }, () => `${progress.done} records were removed.\n`)
      return EXIT.ok
    })
  },
}
