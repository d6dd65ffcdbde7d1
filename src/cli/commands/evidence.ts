import { addEvidence, type EvidenceTold } from '../../workers/index.ts'
import { type Call, type Command, ENCRYPTION, SIGNED } from '../command.ts'
import { EXIT, usage } from '../exit.ts'
import { requireSealing, withOnce } from '../open.ts'
import { readGiven, signatureOf } from './decide.ts'

const MEANINGS: Readonly<Record<EvidenceTold['why'], string>> = {
  record_waits: 'It is kept, and a record waits for this very call: a worker looks at once.',
  no_record_waits:
    'It is kept, and no record waits for such a call now. A wrong key or account looks the same: compare it with `call in doubt` of show.',
  call_is_void:
    'It is kept, and an operator has declared this call void: both calls may have happened. Give one of them back at the processor.',
  earlier_evidence_stands: 'It is left out: earlier evidence about this call stands.',
}

export const EVIDENCE: Command = {
  name: 'evidence',
  summary: 'Tells what became of a call of an operation, as the processor has it.',
  takes: ['<account>', '<call-key>'],
  about: [
    'The key is that of the call, which show names as `call in doubt`. The result is what the call would have returned, as JSON. An unknown record goes on with it by itself; unpark a parked one afterwards. The exit code is 1 where it was left out, or where the call was declared void.',
  ],
  options: [
    { name: 'result', value: '<json>', text: 'The result of the call.' },
    { name: 'result-file', value: '<path>', text: 'Read the result from a file, or from stdin (-).' },
    ...SIGNED.filter(({ name }) => name !== 'fence'),
    ENCRYPTION,
  ],
  examples: [
    `onlyonce evidence acct_1 oo_4f… --result '{"id":"ch_42"}' --actor ann --reason 'paid: ch_42, ticket 4711'`,
  ],
  async run(call) {
    const [account, key] = call.given
    const { by, why } = signatureOf(call)
    const result = await resultOf(call)
    const told = await withOnce(call, async ({ once, pool, schema }) => {
      await requireSealing(call, pool, schema)
      return await addEvidence(once, { account: account!, key: key!, result, by, why })
    })
    call.output.print(told, () => `${MEANINGS[told.why]}\n`)
    return told.why === 'record_waits' || told.why === 'no_record_waits' ? EXIT.ok : EXIT.found
  },
}

async function resultOf(call: Call): Promise<unknown> {
  const bytes = await readGiven(call, 'result', 'result-file')
  if (bytes === undefined) throw usage('Give the result of the call: --result, or --result-file.')
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    throw usage('The result is not JSON.')
  }
}
