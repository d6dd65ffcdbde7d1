import type { FastifyError } from 'fastify'
import type { ProblemDetails } from '../problems.ts'
import { shownField } from './cards.ts'

type Found = NonNullable<FastifyError['validation']>[number]

/** What a schema found wrong, in a sentence that names the member or the parameter. */
export function describeInvalid({ validation, validationContext }: FastifyError): ProblemDetails {
  // With alternatives, each of them complains before the whole does.
  const found = validation?.find(({ keyword }) => keyword === 'anyOf') ?? validation?.[0]
  if (found === undefined) return {}
  const field = fieldOf(found)
  const where = validationContext === 'body' || validationContext === undefined ? 'The body' : 'The request'
  const what = field === '' ? where : field
  return { detail: `${what} ${complaintOf(found)}.`, ...(field !== '' && { field }) }
}

function fieldOf({ instancePath, keyword, params }: Found): string {
  const names = instancePath
    .split('/')
    .slice(1)
    .map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'))
  if (keyword === 'additionalProperties') names.push(`${params.additionalProperty}`)
  if (keyword === 'required') names.push(`${params.missingProperty}`)
  if (keyword === 'propertyNames') names.push(`${params.propertyName}`)
  return shownField(names)
}

function complaintOf({ keyword, params, message }: Found): string {
  switch (keyword) {
    case 'additionalProperties':
      return 'is not known here'
    case 'required':
      return 'is missing'
    case 'propertyNames':
      return 'is not a name that can be used'
    case 'enum':
      return `must be one of ${(params.allowedValues as unknown[]).map(String).join(', ')}`
    case 'anyOf':
      return 'is of none of the forms that it can have'
    default:
      return message ?? 'is not valid'
  }
}
