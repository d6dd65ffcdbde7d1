import { type Operation, operation, reply } from '../../src/index.ts'
import { note } from './payments.ts'

export const LEAVING = 'orders.create'

/** Two steps; what comes between them is where its first owner stays for ever. */
export function leave(between: () => Promise<void>): Operation<null, { key: string }> {
  return operation(LEAVING, async (op, _: null) => {
    const first = await op.transaction('created', async () => ({ number: 1 }))
    await between()
    return op.transaction('finished', async (tx) => {
      await note(tx, op.key)
      return reply(201, { key: op.key, ...first })
    })
  })
}
