import type { Context } from 'hono'
import { matchedRoutes } from 'hono/route'
import { findTargetHandler } from 'hono/utils/handler'
import type { BoundaryRequest } from '../../index.ts'
import type { PatternsSeen } from '../patterns-seen.ts'

/** The pattern of the route that a request is meant for, with what its sub-app is mounted at, and its parameters. */
export function routeOf(
  c: Context,
  seen: PatternsSeen,
): Pick<BoundaryRequest, 'route' | 'pathParams' | 'patterns'> {
  const index = indexOf(c)
  const route = matchedRoutes(c)[index]?.path ?? null
  const pathParams = paramsAt(c, index)
  if (route === null) return { route, pathParams }
  return { route, pathParams, patterns: seen.add(handlerOf(c, index), route) }
}

/** The function that does the work: the last one of the first route behind the layer, and not a validator before it. */
function handlerOf(c: Context, index: number): object {
  const routes = matchedRoutes(c)
  const behind = routes.find(({ method }, i) => i > c.req.routeIndex && method !== 'ALL') ?? routes[index]!
  const chain = routes.filter(({ path, method }) => path === behind.path && method === behind.method)
  // A sub-app with error handling of its own puts a function around each handler, a new one wherever it is mounted.
  return findTargetHandler(chain.at(-1)!.handler)
}

/**
 * Among the routes that match is everything that `app.use` has put there, for all methods and often for all paths. The
 * layer stands in a route of its own, or before one: then it is the next that asks for a method.
 */
function indexOf(c: Context): number {
  const routes = matchedRoutes(c)
  const next = routes.findIndex(({ method }, i) => i >= c.req.routeIndex && method !== 'ALL')
  return next >= 0 ? next : routes.length - 1
}

/** Hono gives the parameters of the route that runs now, which may be that of a middleware with a shorter pattern. */
function paramsAt(c: Context, index: number): Record<string, string> {
  const running = c.req.routeIndex
  c.req.routeIndex = index
  const params = c.req.param() as Record<string, string>
  c.req.routeIndex = running
  return { ...params }
}
