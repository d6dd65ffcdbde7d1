import type { Context } from 'hono'
import { matchedRoutes } from 'hono/route'
import type { BoundaryRequest } from '../../boundary/index.ts'

/** The pattern of the route that a request is meant for, with what its sub-app is mounted at, and its parameters. */
export function routeOf(c: Context): Pick<BoundaryRequest, 'route' | 'path_params'> {
  const index = indexOf(c)
  return { route: matchedRoutes(c)[index]?.path ?? null, path_params: paramsAt(c, index) }
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
