import { bind, type Statement, statement } from './flush.ts'
import * as jobs from './sql/jobs.ts'
import * as outbox from './sql/outbox.ts'
import * as relay from './sql/relay.ts'

/** Goes before the statements of a relay, in the same flush. */
export const BY_INDEX = bind(statement(relay.PLAN_BY_INDEX))

/** The same for what no caller has to wait for until it is on the disk. */
export const SOON = [BY_INDEX, bind(statement(relay.DO_NOT_WAIT))] as const

const { PLAN_BY_INDEX: _, DO_NOT_WAIT: __, ...RELAY } = relay
const TEXTS = { ...outbox, ...RELAY, ...jobs }

export type OutboxStatements = Readonly<Record<keyof typeof TEXTS, Statement>>

/** Every statement on the tables of the outbox in one schema, made once. */
export function outboxStatements(schema: string): OutboxStatements {
  const made = Object.entries(TEXTS).map(([name, text]) => [name, statement(text(schema))])
  return Object.fromEntries(made) as OutboxStatements
}
