/** What a person decides about one record. */
import { createReadStream } from 'node:fs'
import { LIMITS } from '../../core/limits.ts'
import { type GivenReply, operator, type Resolution, type Signature } from '../../operator/index.ts'
import { type Call, type Command, ENCRYPTION, SIGNED, YES } from '../command.ts'
import { EXIT, type ExitCode, usage } from '../exit.ts'
import { confirm, readAll } from '../io.ts'
import { requireSealing, withOnce } from '../open.ts'
import { nameOf, RECORD_ID, recordId } from './record-id.ts'

const EXAMPLE_ID = 'acct_1 orders.create 8e03978e-40d5-43e8-bc93-6894a57f9324'

export const RESOLVE: Command = {
  name: 'resolve',
  summary: 'Settles a record that is unknown or parked: it happened, or it did not.',
  takes: RECORD_ID,
  about: [
    'It happened: give the reply that every retry then gets, with --status, --header and --body. For an operation whose call was made, tell it with `onlyonce evidence` and `onlyonce unpark` instead: a reply ends the record as it is, and the steps behind the call never run.',
    'It did not happen: --allow-retry, only where you have made sure. The next request with this key runs again.',
    'Refused with exit code 1, and nothing is changed, where the record has an owner, is finished, or was changed meanwhile.',
  ],
  options: [
    { name: 'allow-retry', text: 'Nothing happened, and a retry may run.' },
    {
      name: 'earlier-call-is-void',
      text: 'With --allow-retry: the call in doubt was not carried out and never will be, so it gets a new key.',
    },
    { name: 'status', value: '<number>', text: 'The status of the reply, from 200 to 599.' },
    { name: 'header', value: '<name: value>', many: true, text: 'A header of the reply.' },
    {
      name: 'body',
      value: '<text>',
      text: 'The body of the reply; JSON unless a content-type header says otherwise.',
    },
    { name: 'body-file', value: '<path>', text: 'Read the body from a file, or from stdin (-).' },
    { name: 'retention', value: '<duration>', text: 'How long the outcome is kept from now on.' },
    ...SIGNED,
    ENCRYPTION,
    YES,
  ],
  examples: [
    `onlyonce resolve ${EXAMPLE_ID} --status 201 --body '{"id":42}' --actor ann --reason 'order 42 is there'`,
    `onlyonce resolve ${EXAMPLE_ID} --allow-retry --actor ann --reason 'the gateway has no trace of it'`,
  ],
  async run(call) {
    const id = recordId(call)
    const resolution = await resolutionOf(call)
    const what = 'reply' in resolution ? 'is completed with this reply, for good' : 'may run again'
    await confirm(call.io, call.values.has('yes'), `The record ${nameOf(id)} ${what}.`)
    await withOnce(call, async ({ once, pool, schema }) => {
      if ('reply' in resolution) await requireSealing(call, pool, schema)
      await operator(once).resolve(id, resolution)
    })
    return tellState(call, 'reply' in resolution ? 'completed' : 'retryable')
  },
}

export const PARK: Command = {
  name: 'park',
  summary: 'Makes no more automatic attempts to find out what became of a record.',
  takes: RECORD_ID,
  about: [
    'The late reply of its owner counts no more either; retries are told `parked`. Only a record that is unknown, or whose lease is over.',
  ],
  options: SIGNED,
  examples: [`onlyonce park ${EXAMPLE_ID} --actor ann --reason 'the warehouse is asked by phone'`],
  async run(call) {
    const signature = signatureOf(call)
    await withOnce(call, ({ once }) => operator(once).park(recordId(call), signature))
    return tellState(call, 'parked')
  },
}

export const UNPARK: Command = {
  name: 'unpark',
  summary: 'Lets it be found out again what became of a parked record.',
  takes: RECORD_ID,
  about: [
    'A worker looks at it at once, as if for the first time: at an operation by its `find`, at a handler by its `recover`.',
  ],
  options: SIGNED,
  examples: [`onlyonce unpark ${EXAMPLE_ID} --actor ann --reason 'the charge is told as evidence'`],
  async run(call) {
    const signature = signatureOf(call)
    await withOnce(call, ({ once }) => operator(once).unpark(recordId(call), signature))
    return tellState(call, 'unknown')
  },
}

export const DISCARD_RESULT: Command = {
  name: 'discard-result',
  summary: 'Takes back the result of a call that is wrong, so that its call is in doubt again.',
  takes: RECORD_ID,
  about: [
    'For a result that `find` or evidence got wrong. Only that of the last durable step, and only where no later call may follow from it; else it is refused with exit code 1. The record is parked then: tell the right result with `onlyonce evidence`, or repair `find`, and `onlyonce unpark` it. What was discarded stays in the audit.',
  ],
  options: [
    { name: 'step', value: '<name>', text: 'The step, as `show --results` names it. Required.' },
    ...SIGNED,
    ENCRYPTION,
    YES,
  ],
  examples: [
    `onlyonce discard-result acct_1 payments.create 8e03978e-40d5-43e8-bc93-6894a57f9324 --step charged --actor ann --reason 'ch_7 is of order 12'`,
  ],
  async run(call) {
    const id = recordId(call)
    const step = call.values.required('step')
    const signature = signatureOf(call)
    await confirm(call.io, call.values.has('yes'), `The result of ${step} of ${nameOf(id)} is discarded.`)
    const discarded = await withOnce(call, async ({ once, pool, schema }) => {
      await requireSealing(call, pool, schema)
      return await operator(once).discardResult(id, { ...signature, step })
    })
    call.output.print(
      { ...id, state: 'parked', ...discarded, key: id.key, callKey: discarded.key },
      () => `${nameOf(id)} is parked now. Its call is in doubt: ${discarded.key}\n`,
    )
    return EXIT.ok
  },
}

function tellState(call: Call, state: string): ExitCode {
  call.output.print({ ...recordId(call), state }, () => `${nameOf(recordId(call))} is ${state} now.\n`)
  return EXIT.ok
}

export function signatureOf({ values }: Call): Signature {
  const fence = values.whole('fence')
  const signed = { by: values.required('actor'), why: values.required('reason') }
  return fence === undefined ? signed : { ...signed, fence }
}

async function resolutionOf(call: Call): Promise<Resolution> {
  const { values } = call
  const retentionMs = values.durationMs('retention')
  const signed = { ...signatureOf(call), ...(retentionMs !== undefined && { retentionMs }) }
  const allowRetry = values.has('allow-retry')
  const ofReply = ['status', 'header', 'body', 'body-file'].filter((name) => values.has(name))
  if (allowRetry === ofReply.length > 0 || (!allowRetry && !values.has('status'))) {
    throw usage('Give either --status, with --header and --body where there are any, or --allow-retry.')
  }
  if (!allowRetry) {
    if (values.has('earlier-call-is-void'))
      throw usage('--earlier-call-is-void goes with --allow-retry alone.')
    return { ...signed, reply: await replyOf(call) }
  }
  return values.has('earlier-call-is-void')
    ? { ...signed, allowRetry: true, earlierCallIsVoid: true }
    : { ...signed, allowRetry: true }
}

async function replyOf(call: Call): Promise<GivenReply> {
  const { values } = call
  const headers = values.texts('header').map((text) => {
    const found = /^([^:\s]+):\s*(.*)$/.exec(text)
    if (found === null) throw usage("--header is a name and a value: 'content-type: text/plain'.")
    return [found[1]!, found[2]!] as const
  })
  const body = await readGiven(call, 'body', 'body-file')
  return {
    status: values.whole('status')!,
    headers: Object.fromEntries(headers),
    ...(body !== undefined && { body }),
  }
}

/** What is given as text, or by a file, or on stdin; undefined where it is not given. */
export async function readGiven(call: Call, name: string, fileName: string): Promise<Buffer | undefined> {
  const { values, io } = call
  const text = values.text(name)
  const path = values.text(fileName)
  if (text !== undefined && path !== undefined) throw usage(`Give --${name} or --${fileName}, not both.`)
  if (text !== undefined) return Buffer.from(text)
  if (path === undefined) return undefined
  if (path === '-' && io.stdin.isTTY === true)
    throw usage(`--${fileName} - reads from a pipe; this is a terminal.`)
  try {
    return await readAll(path === '-' ? io.stdin : createReadStream(path), LIMITS.replySizeMaxBytes)
  } catch (cause) {
    throw usage(`--${fileName} cannot be read: ${(cause as Error).message}`)
  }
}
