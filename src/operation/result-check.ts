/** The check that a step has for its result. What does not pass it never becomes the durable result of the step. */
import { OnlyonceError } from '../core/errors.ts'
import { isStandardSchema, type SchemaIssue } from '../core/standard-schema.ts'
import { maskCardNumbers } from '../key/index.ts'
import { failureOf } from '../record/failure.ts'
import type { CallStep } from './operation.ts'

/** What passed, or why it did not, in a sentence for operators. */
export type Checked = { readonly value: unknown } | { readonly refused: string }

export async function checkResult<T>({ result: check }: CallStep<T>, value: unknown): Promise<Checked> {
  if (check === undefined) return { value }
  try {
    if (!isStandardSchema(check)) {
      const checked = await check(value)
      // A check that only throws has nothing to give back.
      return { value: checked === undefined ? value : checked }
    }
    const { issues, ...passed } = await check['~standard'].validate(value)
    return issues === undefined
      ? { value: (passed as { value: unknown }).value }
      : { refused: textOf(issues) }
  } catch (error) {
    return { refused: failureOf(error).message }
  }
}

/** The same step, whose call and lookup throw where what they bring does not pass. The call may have been carried out all the same. */
export function checkedStep<T>(step: CallStep<T>): CallStep<T> {
  const { call, find, result } = step
  if (result === undefined) return step
  const passed = async (value: unknown) => {
    const checked = await checkResult(step, value)
    if ('value' in checked) return checked.value as T
    const detail = `What it gave back does not pass the check of the step: ${checked.refused}`
    throw new OnlyonceError('outcome_unknown', { detail })
  }
  const checkedCall: CallStep<T>['call'] = async (context) => await passed(await call(context))
  if (find === undefined) return { ...step, call: checkedCall }
  const checkedFind: typeof find = async (context) => {
    const found = await find(context)
    return found.status === 'found' ? { ...found, result: await passed(found.result) } : found
  }
  return { ...step, call: checkedCall, find: checkedFind }
}

/** For a question whose answer is no result: anything that is found says that the call has happened. */
export function uncheckedStep<T>({ result: _, ...step }: CallStep<T>): CallStep<T> {
  return step
}

function textOf(issues: readonly SchemaIssue[]): string {
  const { message, path = [] } = issues[0] ?? { message: 'It is not valid.' }
  const at = path.map((token) => String(typeof token === 'object' ? token.key : token)).join('.')
  return maskCardNumbers(at === '' ? `${message}` : `${at}: ${message}`).slice(0, TEXT_LENGTH_MAX)
}

const TEXT_LENGTH_MAX = 200
