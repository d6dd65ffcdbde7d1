import { OnlyonceError, type RecordId } from 'onlyonce'
import { derivedKey } from 'onlyonce/keys'
import { operator } from 'onlyonce/operator'
import { addEvidence } from 'onlyonce/workers'
import { type Static, Type } from 'typebox'
import { basisOf, type Decision, decide, evidenceOf } from '../payments/index.ts'
import { Refused } from '../problems.ts'
import type { Service } from '../service.ts'
import { requireOpsToken } from './auth.ts'
import { withCursor } from './cursors.ts'
import { API_LIMITS } from './limits.ts'
import { Nullable } from './schemas.ts'
import { readTime, Time } from './times.ts'
import type { Routes } from './type.ts'

const tags = ['ops']
/** Which record: whose, of what, and under which key. */
const RECORD = {
  account: Type.String({ minLength: 1, maxLength: 100, description: 'With its mode: acct_…:test.' }),
  operation: Type.String({ minLength: 1, maxLength: 255 }),
  key: Type.String({ minLength: 1, maxLength: 255 }),
}
const WHY_LENGTH_MAX = 1_000
/** Kept for ever beside what was decided. */
const SIGNATURE = {
  by: Type.String({
    minLength: 1,
    maxLength: 255,
    // In one line, and more than spaces.
    pattern: '^(?! *$)[^\\u0000-\\u001f\\u007f-\\u009f]*$',
    description: 'Who decides.',
  }),
  why: Type.String({ minLength: 1, maxLength: WHY_LENGTH_MAX, pattern: '\\S' }),
}
const FOUND = {
  gateway_id: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 255,
      description:
        'What it is called at the processor: pi_… of a payment or a capture, re_… of a refund. Of payments and refunds it is looked up there: refused with 400 where there is none, where it belongs to another payment or refund, where its amount or currency differs, or where the processor has not taken, or does not hold, exactly this amount; with 503 where the processor cannot be asked.',
    }),
  ),
  capture_before: Type.Optional({
    ...Time,
    description:
      'Of a payment that is held: until when, at most as long as the processor says. Only needed where the processor does not say it.',
  }),
}
const DecisionBody = Type.Object(
  {
    ...RECORD,
    ...SIGNATURE,
    decision: Type.Enum(['executed', 'not_executed', 'retry', 'park', 'unpark']),
    fence: Type.Optional(
      Type.Integer({ minimum: 1, description: 'As it was seen; refused if it is another by now.' }),
    ),
    earlier_call_is_void: Type.Optional(
      Type.Literal(true, {
        description:
          'With retry alone: the call that was in doubt was not carried out and never will be. The next one gets a new key.',
      }),
    ),
    ...FOUND,
    unchecked: Type.Optional(
      Type.Literal(true, {
        description:
          'With executed and not_executed: decide also where the processor cannot be asked. For a processor that is away for good; the audit says so. What the processor does say still counts.',
      }),
    ),
    processor_statement: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 255,
        pattern: '^(?! *$)[^\\u0000-\\u001f\\u007f-\\u009f]*$',
        description:
          'With not_executed, and with retry and earlier_call_is_void: where the written statement of the processor is kept, such as its ticket, which says that it has not carried out the request and never will. Decides before decidable_at; the audit keeps it. What the processor does show still counts.',
      }),
    ),
    reply: Type.Optional(
      Type.Object(
        {
          status: Type.Integer({ minimum: 200, maximum: 599 }),
          headers: Type.Optional(Type.Record(Type.String(), Type.String())),
          body: Type.Optional(Type.Unknown()),
        },
        {
          additionalProperties: false,
          description: 'In place of the reply that the request would have had.',
        },
      ),
    ),
  },
  { additionalProperties: false },
)
type DecisionBody = Static<typeof DecisionBody>
const EvidenceBody = Type.Object(
  {
    ...RECORD,
    ...SIGNATURE,
    outcome: Type.Enum(['executed', 'declined']),
    ...FOUND,
    message: Type.Optional(Type.String({ minLength: 1, maxLength: 500, description: 'Of a decline.' })),
  },
  { additionalProperties: false },
)
const InDoubt = Type.Object(
  {
    step: Nullable(Type.String({ description: 'The step of the operation that makes the call.' })),
    key: Type.String({ description: 'The idempotency key of the call at the processor.' }),
    generation: Nullable(
      Type.Integer({ minimum: 0, description: 'How many earlier calls of the step were declared void.' }),
    ),
    since: Type.Integer({ description: 'When the doubt began, in milliseconds since the epoch.' }),
  },
  { description: 'The call whose outcome is not known. Null where no single call is in doubt.' },
)
const Story = Type.Object({
  state: Type.String(),
  why: Type.String(),
  next: Type.String(),
  in_doubt: Nullable(InDoubt),
  record: Nullable(Type.Unknown()),
  attempts: Type.Array(Type.Unknown()),
  audit: Type.Array(Type.Unknown({ description: 'What operators have decided, the oldest first.' })),
})

/** Records that no program can finish: seeing them, and deciding about them. */
export const opsRecordRoutes: Routes = async (app, service) => {
  const { once } = service
  app.addHook('onRequest', requireOpsToken(service, service.strangers))

  app.get(
    '/ops/records',
    {
      schema: {
        summary: 'List records that are not finished',
        tags,
        querystring: Type.Object(
          {
            account: Type.Optional(Type.String({ minLength: 1, maxLength: 100 })),
            older_than: Type.Optional(
              Type.Integer({ minimum: 0, maximum: 31_536_000, description: 'In seconds.' }),
            ),
            limit: Type.Optional(Type.Integer({ minimum: 1, maximum: API_LIMITS.pageMax })),
            cursor: Type.Optional(Type.String({ minLength: 1, maxLength: 2_000 })),
          },
          { additionalProperties: false },
        ),
        response: {
          200: Type.Object({
            data: Type.Array(Type.Unknown()),
            has_more: Type.Boolean(),
            next_cursor: Nullable(Type.String()),
          }),
        },
      },
    },
    async ({ query: { account, older_than: olderThan, limit, cursor } }) => {
      const page = await withCursor(cursor, () =>
        operator(once).list({
          ...(account !== undefined && { account }),
          ...(olderThan !== undefined && { olderThanMs: olderThan * 1_000 }),
          limit: limit ?? API_LIMITS.pageDefault,
          ...(cursor !== undefined && { cursor }),
        }),
      )
      return { data: page.items.map(onTheWire), has_more: page.cursor !== null, next_cursor: page.cursor }
    },
  )

  app.get(
    '/ops/record',
    {
      schema: {
        summary: 'Show a record, its attempts, and what operators have decided about it',
        description: 'In the query, which is not logged: a key says whose request it was.',
        tags,
        querystring: Type.Object(RECORD, { additionalProperties: false }),
        response: { 200: Story },
      },
    },
    async ({ query }) => await storyOf(service, query),
  )

  app.post(
    '/ops/record/decisions',
    {
      schema: {
        summary: 'Decide about a record that no program can finish',
        description:
          'executed and not_executed settle what the request holds, post to the ledger what happened, and give its retries their reply, in one commit. Both are compared with what the processor shows: 400 where it shows otherwise, 503 where it cannot be asked. retry lets it run again: only where it is certain that nothing happened.',
        tags,
        body: DecisionBody,
        response: { 200: Story },
      },
    },
    async ({ body }) => {
      const { account, operation, key, ...decision } = body
      const record = { account, operation, key }
      await decide(service, record, readDecision(decision)).catch(refuseReply)
      return await storyOf(service, record)
    },
  )

  app.post(
    '/ops/record/evidence',
    {
      schema: {
        summary: 'Tell what the processor has done, and let a worker finish the request',
        description:
          'The first evidence wins. A record that is parked is unparked, so that a worker looks at it at once.',
        tags,
        body: EvidenceBody,
        response: { 200: Story },
      },
    },
    async ({ body }) => {
      const { account, operation, key, by, why, ...found } = body
      const record = { account, operation, key }
      if (found.capture_before !== undefined) readTime('capture_before', found.capture_before)
      const evidence = await evidenceOf(service, record, found)
      const { record: seen, state } = await operator(once).show(record)
      if (evidence === null || (state !== 'unknown' && state !== 'parked')) {
        const detail = `The record is ${state}: evidence is taken of calls whose outcome is in doubt.`
        throw new Refused('invalid_request', { field: 'key', detail })
      }
      const { step, result } = evidence
      const callKey = seen?.waitsFor ?? derivedKey({ ...record, step })
      await addEvidence(once, { account, key: callKey, result, by, why })
      if (state === 'parked') await operator(once).unpark(record, { by, why })
      return await storyOf(service, record)
    },
  )
}

function readDecision({ reply, ...rest }: Omit<DecisionBody, keyof typeof RECORD>): Decision {
  if (rest.earlier_call_is_void && rest.decision !== 'retry') {
    const detail = 'earlier_call_is_void goes with the decision retry, and with no other.'
    throw new Refused('invalid_request', { field: 'earlier_call_is_void', detail })
  }
  if (rest.unchecked && rest.decision !== 'executed' && rest.decision !== 'not_executed') {
    const detail = 'unchecked goes with the decisions executed and not_executed, and with no other.'
    throw new Refused('invalid_request', { field: 'unchecked', detail })
  }
  const stated = rest.processor_statement !== undefined
  if (stated && rest.decision !== 'not_executed' && !rest.earlier_call_is_void) {
    const detail =
      'processor_statement goes with the decision not_executed, and with retry and earlier_call_is_void.'
    throw new Refused('invalid_request', { field: 'processor_statement', detail })
  }
  const basis = basisOf(rest)
  if (basis.length + rest.why.length > WHY_LENGTH_MAX) {
    const detail = `Here why has at most ${WHY_LENGTH_MAX - basis.length} characters: "${basis}" is put before it.`
    throw new Refused('invalid_request', { field: 'why', detail })
  }
  if (rest.capture_before !== undefined) readTime('capture_before', rest.capture_before)
  if (reply === undefined) return rest as Decision
  const { status, headers = {}, body } = reply
  // In one spelling: else a Content-Type would stand beside ours.
  const named = Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
  )
  const typed = { 'content-type': 'application/json; charset=utf-8', ...named }
  const given = { status, headers: typed, ...(body !== undefined && { body: JSON.stringify(body) }) }
  return { ...rest, reply: given } as Decision
}

/** A reply that cannot be sent as it is, such as one with a header that is none, is the operator's mistake and no fault of ours. */
function refuseReply(error: unknown): never {
  if (error instanceof OnlyonceError && error.code === 'decision_invalid')
    throw new Refused('invalid_request', { field: 'why', detail: error.message })
  if (!(error instanceof OnlyonceError && error.code === 'option_invalid')) throw error
  throw new Refused('invalid_request', { field: 'reply', detail: error.message })
}

async function storyOf({ once }: Pick<Service, 'once'>, id: RecordId) {
  const { state, why, next, inDoubt, record, attempts, audit } = await operator(once).show(id)
  return {
    state,
    why,
    next,
    in_doubt: inDoubt === null ? null : onTheWire(inDoubt),
    record: record === null ? null : onTheWire(record),
    attempts: attempts.map(onTheWire),
    audit: audit.map(onTheWire),
  }
}

/** Members of the API are in snake_case, those of the library in camelCase. */
function onTheWire(shown: object): Record<string, unknown> {
  const members = Object.entries(shown)
  return Object.fromEntries(
    members.map(([name, value]) => [
      name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      value,
    ]),
  )
}
