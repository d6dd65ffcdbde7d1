import { applyDecorators, createParamDecorator, SetMetadata, UseInterceptors } from '@nestjs/common'
import { METHOD_METADATA } from '@nestjs/common/constants.js'
import { MetadataScanner } from '@nestjs/core'
import { acrossCopies } from '../../../core/copies.ts'
import { OnlyonceError } from '../../../core/errors.ts'
import type { IdempotencyContext, RoutePolicy } from '../../index.ts'
import type { Durable, FitsOperation } from '../../operation-route.ts'
import { OnlyonceInterceptor } from './interceptor.ts'
import { callOf, isProtected, markProtected, POLICY, wantTx } from './marks.ts'

/**
 * A method without parameters and without a result: what stands where a route is, and does not run. Any other method is refused by the
 * compiler.
 */
type EmptyMethod = (
  target: object,
  name: string | symbol,
  descriptor: TypedPropertyDescriptor<() => void>,
) => void

/**
 * Protects a handler, or all handlers of a controller; what a handler says itself comes before what its controller says.
 * The key is claimed when guards, interceptors and pipes have let the request through, right before the handler. A durable operation
 * answers by itself: its method is empty.
 *
 * @example
 * @Post()
 * @Idempotent({ protect: 'transaction' })
 * create(@Body() order: NewOrder, @Tx() tx: PostgresTx) {
 *   return this.orders.insert(tx, order)
 * }
 *
 * @Post('payments')
 * @Idempotent({ operation: createPayment })
 * pay(): void {}
 */
export function Idempotent<const O extends Durable>(
  policy: Omit<RoutePolicy, 'operation'> & FitsOperation<O> & { readonly operation: O },
): EmptyMethod
export function Idempotent(
  policy?: RoutePolicy & { readonly operation?: string },
): ClassDecorator & MethodDecorator
export function Idempotent(policy: RoutePolicy = {}): ClassDecorator & MethodDecorator {
  return applyDecorators(protect, SetMetadata(POLICY, policy), UseInterceptors(OnlyonceInterceptor))
}

/**
 * Gives a handler the context of its protection, or undefined where the request is not protected. It is also
 * `request.idempotency`.
 *
 * @example
 * create(@Body() order: NewOrder, @Idempotency() idempotency: IdempotencyContext<PostgresTx>) {}
 */
export const Idempotency: () => ParameterDecorator = createParamDecorator(() => PLACE)

/**
 * Gives a handler the transaction that its effects have to be in. The application does not start where the route of the handler has no
 * `protect: 'transaction'`.
 *
 * @example
 * create(@Body() order: NewOrder, @Tx() tx: PostgresTx) {}
 */
export function Tx(): ParameterDecorator {
  return (target, name, index) => {
    if (name !== undefined) wantTx(target, name)
    TxPlace()(target, name, index)
  }
}

const TxPlace: () => ParameterDecorator = createParamDecorator(() => TX_PLACE)

/** Stand for the context and its transaction, which are there only when the key has been claimed, after the parameters. */
const PLACE = acrossCopies('nest_place', () => () => {})
const TX_PLACE = acrossCopies('nest_tx_place', () => () => {})

/**
 * The request comes to the handler as one more parameter, behind all others. An AsyncLocalStorage was dropped for this:
 * an interceptor that loses it would have made the handler run unprotected.
 */
const TICKET_INDEX = 32

// A function, because pipes that look into what they are given leave functions alone.
const Ticket = createParamDecorator((_, context) => {
  const call = callOf(context.switchToHttp().getRequest())
  return () => call
})

function protect(target: object, name?: string | symbol, descriptor?: PropertyDescriptor): void {
  if (name !== undefined && descriptor !== undefined) {
    protectMethod(target, name, descriptor)
    return
  }
  const prototype = (target as { prototype: object }).prototype
  for (const method of new MetadataScanner().getAllMethodNames(prototype)) {
    const handler = (prototype as Record<string, Handler>)[method]!
    if (!Reflect.hasMetadata(METHOD_METADATA, handler) || isProtected(handler)) continue
    protectMethod(prototype, method, {
      value: handler,
      configurable: true,
      writable: true,
      enumerable: false,
    })
  }
}

// biome-ignore lint/suspicious/noExplicitAny: handlers have parameters of every type.
type Handler = (...args: any[]) => unknown

function protectMethod(prototype: object, name: string | symbol, descriptor: PropertyDescriptor): void {
  if (isProtected(descriptor.value)) {
    const title = `${prototype.constructor.name}.${String(name)}`
    throw new OnlyonceError('layer_twice', { detail: `See @Idempotent() of ${title}.` })
  }
  Ticket()(prototype, name, TICKET_INDEX)
  descriptor.value = protectedHandler(descriptor.value, `${prototype.constructor.name}.${String(name)}`)
  // What decorators return is not looked at by applyDecorators, so the method is put in its place here too.
  Object.defineProperty(prototype, name, descriptor)
}

function protectedHandler(handler: Handler, title: string): Handler {
  function idempotency(this: unknown, ...args: unknown[]): unknown {
    // Called by code alone, in a test for example: there is no request.
    if (args.length <= TICKET_INDEX) return handler.apply(this, args)
    const ticket = args[TICKET_INDEX]
    const call = typeof ticket === 'function' ? ticket() : undefined
    if (call === undefined) {
      throw new OnlyonceError('setup_invalid', {
        detail: `${title}: its interceptor did not run, so it is not executed.`,
      })
    }
    const given = args.slice(0, TICKET_INDEX)
    return call.run((context: IdempotencyContext<unknown> | null) =>
      handler.apply(
        this,
        given.map((one) => {
          if (one === TX_PLACE) return txOf(context, title)
          return one === PLACE ? (context ?? undefined) : one
        }),
      ),
    )
  }
  // Metadata of decorators that were applied before are found along the prototypes.
  Object.setPrototypeOf(idempotency, handler)
  Object.defineProperty(idempotency, 'name', { value: handler.name, configurable: true })
  return markProtected(idempotency)
}

/** A handler that wants a transaction must not go on without one. */
function txOf(context: IdempotencyContext<unknown> | null, title: string): unknown {
  if (context !== null) return context.tx
  throw new OnlyonceError('setup_invalid', {
    detail: `${title}: this request is not protected, so it has no tx. See methods and key of @Idempotent().`,
  })
}
