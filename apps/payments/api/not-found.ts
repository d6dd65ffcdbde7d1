import type { Door } from './auth.ts'
import { sendProblem } from './errors.ts'
import type { Strangers } from './strangers.ts'
import type { Api } from './type.ts'

interface KnownRoute {
  readonly methods: readonly string[]
  readonly pattern: RegExp
}

/**
 * What is not found is told apart from what is there for other methods; behind a door, only to those who may pass it. Each costs its
 * address a try, unless it passes a door, which has limits of its own. Add it before the routes.
 */
export function answerUnknownRoutes(
  app: Api,
  doors: Readonly<Record<string, Door>>,
  strangers: Strangers,
): void {
  const routes: KnownRoute[] = []
  app.addHook('onRoute', ({ method, url }) => {
    if (!url.includes('*')) routes.push({ methods: [method].flat(), pattern: patternOf(url) })
  })
  app.setNotFoundHandler(async (request, reply) => {
    const path = request.url.split('?', 1)[0]!
    const door = Object.keys(doors).find((prefix) => path.startsWith(prefix))
    if (door === undefined) strangers.take(request)
    else await doors[door]!(request, reply)
    const methods = routes.filter(({ pattern }) => pattern.test(path)).flatMap((route) => route.methods)
    if (methods.length === 0) return sendProblem(request, reply, 'not_found')
    reply.header('allow', [...new Set(methods)].sort().join(', '))
    return sendProblem(request, reply, 'method_not_allowed')
  })
}

function patternOf(url: string): RegExp {
  const parts = url.split('/').map((part) => (part.startsWith(':') ? '[^/]+' : part.replaceAll('.', '\\.')))
  return new RegExp(`^${parts.join('/')}$`)
}
