import type { BoundaryRequest } from '../../index.ts'
import { patternText } from '../place.ts'

/** What @koa/router leaves on a context, in versions 10 to 15. */
interface Routed {
  readonly _matchedRoute?: unknown
  readonly params?: Readonly<Record<string, string | undefined>>
  readonly router?: { readonly stack?: readonly RouterLayer[] }
}

interface RouterLayer {
  readonly path: unknown
  readonly methods: readonly string[]
  readonly stack: readonly object[]
}

/**
 * The pattern of the route that the request matched, with the prefixes of its routers, and its parameters. Without a router there is no
 * pattern. A list of paths is several routes of one handler: the router knows all of them.
 */
export function placeOf(ctx: object): Pick<BoundaryRequest, 'route' | 'pathParams' | 'patterns'> {
  const { _matchedRoute, params = {}, router } = ctx as Routed
  const route = patternText(_matchedRoute)
  const known = Object.entries(params).filter(([, value]) => value !== undefined)
  const pathParams = Object.fromEntries(known) as Record<string, string>
  if (route === null) return { route, pathParams }
  const layers = (router?.stack ?? []).filter(({ methods }) => methods.length > 0)
  const handlers = layers.filter(({ path }) => patternText(path) === route).map(({ stack }) => stack.at(-1))
  const same = layers.filter(({ stack }) => handlers.includes(stack.at(-1)))
  const patterns = [...new Set([route, ...same.map(({ path }) => patternText(path) ?? '')])]
  return { route, pathParams, patterns }
}
