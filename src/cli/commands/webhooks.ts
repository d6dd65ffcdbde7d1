import { webhooks } from '../../webhooks/index.ts'
import type { Command } from '../command.ts'
import { EXIT, usage } from '../exit.ts'
import { withOnce } from '../open.ts'

export const WEBHOOKS_REPLAY: Command = {
  name: 'webhooks replay',
  summary: 'Delivers webhooks to an endpoint again: one message, or what happened within a time.',
  takes: ['<account>', '<endpoint>'],
  about: [
    'They are made due; a deliverer of the service sends them, with the same ids and the same bytes, signed anew. Receivers tell duplicates by the id.',
  ],
  options: [
    { name: 'message', value: '<id>', text: 'One message, also when it was delivered.' },
    {
      name: 'from',
      value: '<time>',
      text: 'What happened from then on: 2026-11-14, or 2026-11-14T09:30:00Z.',
    },
    { name: 'to', value: '<time>', text: 'And before that time.' },
  ],
  examples: ['onlyonce webhooks replay acct_1 we_0192f0c1-… --from 2026-11-14 --to 2026-11-15'],
  async run(call) {
    const { values, io } = call
    const [account, endpoint] = call.given as [string, string]
    const [message, from, to] = [values.text('message'), values.timeMs('from'), values.timeMs('to')]
    const isRange = from !== undefined && to !== undefined
    const partly = from !== undefined || to !== undefined
    if ((message !== undefined) === partly || partly !== isRange) {
      throw usage('Give --message, or --from and --to.')
    }
    const replayed = await withOnce(call, async ({ once }) => {
      const hooks = webhooks(once)
      if (!isRange) return (await hooks.replay({ account, endpoint, message: message! })).count
      let count = 0
      let cursor: string | null = null
      do {
        const batch: { readonly count: number; readonly cursor: string | null } = await hooks.replay({
          account,
          endpoint,
          from,
          to,
          cursor,
        })
        count += batch.count
        cursor = batch.cursor
      } while (cursor !== null && !io.signal.aborted)
      return count
    })
    call.output.print({ replayed }, () => `${replayed} deliveries are due again.\n`)
    return EXIT.ok
  },
}
