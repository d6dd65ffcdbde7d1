import { describe, expect, it } from 'vitest'
import { openTestService } from './service.ts'

interface Operation {
  readonly summary?: string
  readonly security?: readonly Readonly<Record<string, unknown>>[]
  readonly parameters?: readonly { readonly in: string; readonly name: string; readonly required?: boolean }[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> }
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content?: object }>>
}

interface Schema {
  readonly type?: string
  readonly additionalProperties?: unknown
  readonly properties?: Readonly<Record<string, Schema>>
}

const shared = await openTestService()
const { ask, api } = shared
const { body: document } = await ask('/openapi.json', { apiKey: null })
const operations = Object.entries(document.paths as Record<string, Record<string, Operation>>).flatMap(
  ([path, methods]) => Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
)
const unsafe = ({ path, method }: { path: string; method: string }) =>
  path.startsWith('/v1/') && method !== 'get' && path !== '/v1/idempotency-keys'

/** As the router draws them: a tree, in which each line goes on from the one above it that is less indented. */
function servedRoutes(): string[] {
  const parts: string[] = []
  return api
    .printRoutes({ commonPrefix: false })
    .split('\n')
    .flatMap((line) => {
      const [, indent, part, methods] = /^(.*?)[├└]── (\S*)(?: \(([A-Z, ]+)\))?/.exec(line) ?? []
      if (indent === undefined || part === undefined) return []
      parts.splice(indent.length / 4, Number.POSITIVE_INFINITY, part)
      const path = parts.join('').replaceAll(/:(\w+)/g, '{$1}')
      return (methods?.split(', ') ?? []).map((method) => `${method} ${path}`)
    })
}

describe('the description of the API', () => {
  it('is an OpenAPI document of version 3.1', () => {
    expect(document).toMatchObject({
      openapi: '3.1.0',
      info: { title: expect.any(String), version: expect.any(String) },
    })
    expect(operations.length).toBeGreaterThan(5)
  })

  it('has every route that there is, and no other', () => {
    const described = operations.map(({ path, method }) => `${method.toUpperCase()} ${path}`)
    const served = servedRoutes().filter((route) => !/^HEAD | \/docs| \/openapi\.json/.test(route))
    expect(described.sort()).toEqual(served.sort())
  })

  it('refers to nothing that it does not have', () => {
    const refs = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(([, ref]) => ref!)
    expect(refs.length).toBeGreaterThan(0)
    for (const ref of refs) {
      const found = ref
        .slice(2)
        .split('/')
        .reduce<unknown>((at, name) => (at as Record<string, unknown>)?.[name], document)
      expect(found, ref).toBeDefined()
    }
  })

  it.each(operations)('is whole: $method $path', ({ path, operation }) => {
    expect(operation.summary).toMatch(/^[A-Z]/)
    expect(operation.responses.default).toBeUndefined()
    expect(operation.responses['400']).toBeDefined()
    for (const { description } of Object.values(operation.responses)) expect(description).toMatch(/\S/)
    const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
    const parameters = operation.parameters?.filter((parameter) => parameter.in === 'path') ?? []
    expect(parameters.map(({ name }) => name).sort()).toEqual(named.sort())
    expect(parameters.every(({ required }) => required)).toBe(true)
  })

  it.each(operations.filter(({ path }) => /^\/(?:v1|ops)\//.test(path)))(
    'says who may: $method $path',
    ({ path, operation }) => {
      expect(operation.security).toEqual([path.startsWith('/v1/') ? { api_key: [] } : { ops_token: [] }])
    },
  )
})

describe('every write', () => {
  const writes = operations.filter(unsafe)

  it('is there', () => expect(writes.length).toBeGreaterThan(0))

  it.each(writes)('takes a key, and says so: $method $path', ({ operation }) => {
    const header = operation.parameters?.find(({ in: place }) => place === 'header')
    expect(header).toMatchObject({ name: 'Idempotency-Key', required: true })
  })

  it.each(writes)('refuses members that are not known: $method $path', ({ operation }) => {
    const schema = operation.requestBody?.content['application/json']?.schema
    if (schema !== undefined) expect(schema).toMatchObject({ type: 'object', additionalProperties: false })
  })
})

it('tells the names of metadata, how to filter by it, and every limit that can be met', () => {
  const { get, post } = document.paths['/v1/payments']
  const filter = get.parameters.find(({ name }: { name: string }) => name === 'metadata')
  expect(filter).toMatchObject({
    in: 'query',
    style: 'deepObject',
    explode: true,
    schema: { type: 'object' },
  })
  const { metadata } = post.requestBody.content['application/json'].schema.properties
  const refunds = document.paths['/v1/payments/{payment}/refunds'].post.requestBody.content
  for (const named of [metadata, refunds['application/json'].schema.properties.metadata, filter.schema]) {
    const names = new RegExp(named.propertyNames.pattern)
    expect(['color', 'a.b-c_1', 'a b', '', '__proto__'].map((name) => names.test(name))).toEqual([
      ...[true, true, false, false, false],
    ])
  }
  expect(metadata.description).toContain('1 to 40 of the characters A-Z, a-z, 0-9, _, . and -')
  const { description } = post.responses['429'].headers['Stripe-Rate-Limited-Reason']
  for (const reason of REASONS) expect(description).toContain(reason)
})

const REASONS = [
  'account-rate',
  'account-concurrency',
  'daily-quota',
  'card-velocity',
  'account-velocity',
  'address-rate',
]

it('there is a page for people, which needs nothing from elsewhere', async () => {
  const page = await ask('/docs', { apiKey: null })
  expect(page.status).toBe(200)
  const links = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, link]) => link!)
  expect(links.length).toBeGreaterThan(3)
  for (const link of links) {
    expect(link).not.toMatch(/^(?:https?:)?\/\//)
    const { status } = await ask(new URL(link, 'http://a/docs/').pathname, { apiKey: null })
    expect(status, link).toBe(200)
  }
})
