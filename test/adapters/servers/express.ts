import { createServer } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Application, NextFunction, Request, RequestHandler, Response, Router } from 'express'
import { idempotent, keepRawBody } from '../../../src/http/adapters/express/index.ts'
import type { Onlyonce } from '../../../src/index.ts'
import type { PostgresTx } from '../../../src/store/postgres/index.ts'
import {
  ACCOUNT_HEADER,
  type AdapterUnderTest,
  EARLY_HEADER,
  type HeaderList,
  type Listening,
  PARSER_MAX_BYTES,
  type Result,
  type Route,
} from '../under-test.ts'
import { listening } from './listen.ts'

/** What version 4 and 5 have in common. */
export interface ExpressPackage {
  (): Application
  Router(): Router
  json(options: object): RequestHandler
  text(): RequestHandler
}

/** Makes an adapter under test of one of the versions. */
export function expressUnderTest(name: string, express: ExpressPackage): AdapterUnderTest {
  return { name, lacks: LACKS, serve: (once, routes) => serve(express, once, routes) }
}

const LACKS = {
  prefix_pattern: 'A router is not told where it is mounted, and Express keeps no pattern of it.',
}

async function serve(
  express: ExpressPackage,
  once: Onlyonce<PostgresTx>,
  routes: readonly Route[],
): Promise<Listening> {
  const app = express()
  // Otherwise Express writes every error to the console.
  app.set('env', 'test')
  app.use((_, response, next) => {
    response.setHeader(...EARLY_HEADER)
    next()
  })
  for (const route of routes) {
    const router = route.prefix === '' ? app : express.Router()
    if (route.prefix !== '') app.use(route.prefix, router as Router)
    const method = route.method.toLowerCase() as 'post'
    router[method](route.path, ...stepsOf(express, once, route))
  }
  return await listening(createServer(app))
}

function stepsOf(express: ExpressPackage, once: Onlyonce<PostgresTx>, route: Route): RequestHandler[] {
  const account = (request: Request) => request.get(ACCOUNT_HEADER)
  const layer = idempotent(once, { account, ...route.policy }) as unknown as RequestHandler
  const parsers = (verify?: typeof keepRawBody) => [
    express.json({ limit: PARSER_MAX_BYTES, ...(verify && { verify }) }),
    express.text(),
  ]
  const handler: RequestHandler = (request, response, next) => handle(route, request, response, next)
  switch (route.order) {
    case 'layer_first':
      return [layer, ...parsers(), handler]
    case 'parser_first':
      return [...parsers(), layer, handler]
    case 'parser_first_bytes_kept':
      return [...parsers(keepRawBody), layer, handler]
    default:
      return route.order satisfies never
  }
}

function handle(route: Route, request: Request, response: Response, next: NextFunction) {
  const answer = route.handle({
    body: request.body,
    params: request.params as Record<string, string>,
    query: request.query,
    once: request.idempotency ?? null,
    setHeader: (name, value) => response.setHeader(name, value),
  })
  if (answer instanceof Promise) {
    // Version 4 does not look at what a handler returns.
    return answer.then((result) => perform(result, response, next)).catch(next)
  }
  return perform(answer, response, next)
}

function perform(result: Result, response: Response, next: NextFunction): unknown {
  if ('status' in result) {
    response.status(result.status)
    setHeaders(response, result.headers ?? [])
  }
  switch (result.do) {
    case 'json':
      return response.json(result.value)
    case 'text':
      return response.type('text/plain').send(result.text)
    case 'empty':
      return response.end()
    case 'redirect':
      return response.redirect(result.status, result.location)
    case 'binary':
      return response.type(result.type).send(result.bytes)
    case 'chunks':
      response.setHeader('content-type', result.type)
      return writeAll(response, result.chunks).catch(next)
    case 'stream':
      response.setHeader('content-type', result.type)
      return result.stream.pipe(response)
    case 'end':
      return response.end()
    case 'json_and_throw':
      response.json(result.value)
      throw result.error
    case 'throw':
      throw result.error
    case 'reject':
    case 'next':
      return next(result.error)
    case 'not_found':
      return next()
    default:
      return result satisfies never
  }
}

async function writeAll(response: Response, chunks: readonly (string | Buffer)[]): Promise<void> {
  for (const chunk of chunks) {
    response.write(chunk)
    await nextTurn()
  }
  response.end()
}

function setHeaders(response: Response, headers: HeaderList): void {
  for (const [name, value] of headers) response.append(name, value)
}
