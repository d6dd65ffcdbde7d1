/**
 * What checks a body or a result: a schema of zod, valibot, arktype or any other library that follows Standard Schema, version 1. A copy of the
 * part of its interface that is used here.
 */
export interface StandardSchema {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => SchemaResult | Promise<SchemaResult>
  }
}

type SchemaResult =
  | { readonly value: unknown; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] }

export interface SchemaIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

export function isStandardSchema(given: unknown): given is StandardSchema {
  if (given === null || (typeof given !== 'object' && typeof given !== 'function')) return false
  const standard = (given as Partial<StandardSchema>)['~standard']
  return standard?.version === 1 && typeof standard.validate === 'function'
}
