import type { Lookups } from './books/lookups.ts'
import { type Order, readCancel, readCapture, readCreate, readRefund } from './books/orders.ts'
import { Failure } from './http/failure.ts'
import type { ParameterMap } from './http/form.ts'
import type { Target } from './wire.ts'

/** What a method and a path mean. */
export type Route =
  | { readonly target: 'lookup'; look(lookups: Lookups, form: ParameterMap, now: number): object }
  | { readonly target: Exclude<Target, 'lookup'>; read(form: ParameterMap): Order }

const CREATE: Route = { target: 'create', read: readCreate }
const REFUND: Route = { target: 'refund', read: readRefund }
const INTENTS: Route = { target: 'lookup', look: (lookups, form, now) => lookups.intents(form, now) }
const SEARCH: Route = { target: 'lookup', look: (lookups, form, now) => lookups.search(form, now) }
const REFUNDS: Route = { target: 'lookup', look: (lookups, form, now) => lookups.refunds(form, now) }
const EVENTS: Route = { target: 'lookup', look: (lookups, form, now) => lookups.events(form, now) }

export function findRoute(method: string, path: string): Route {
  const [, version, collection, id, action, more] = path.split('/')
  const route = version === 'v1' && more === undefined ? routeOf(method, collection ?? '', id, action) : null
  if (route !== null) return route
  const message = `Unrecognized request URL (${method}: ${path.slice(0, 200)}). README.md tells what this sandbox knows.`
  throw new Failure(404, { type: 'invalid_request_error', message })
}

function routeOf(
  method: string,
  collection: string,
  id: string | undefined,
  action: string | undefined,
): Route | null {
  const what = `${method} ${collection}${id === undefined ? '' : '/:id'}${action === undefined ? '' : `/${action}`}`
  switch (what) {
    case 'POST payment_intents':
      return CREATE
    case 'POST payment_intents/:id/capture':
      return { target: 'capture', read: (form) => readCapture(form, id!) }
    case 'POST payment_intents/:id/cancel':
      return { target: 'cancel', read: (form) => readCancel(form, id!) }
    case 'POST refunds':
      return REFUND
    case 'GET payment_intents':
      return INTENTS
    case 'GET payment_intents/:id':
      if (id === 'search') return SEARCH
      return { target: 'lookup', look: (lookups, form, now) => lookups.intent(id!, form, now) }
    case 'GET refunds':
      return REFUNDS
    case 'GET refunds/:id':
      return { target: 'lookup', look: (lookups, form, now) => lookups.refund(id!, form, now) }
    case 'GET events':
      return EVENTS
    case 'GET events/:id':
      return { target: 'lookup', look: (lookups, form, now) => lookups.event(id!, form, now) }
    default:
      return null
  }
}
