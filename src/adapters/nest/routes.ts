import { Inject, Injectable, type OnModuleInit, type Type } from '@nestjs/common'
import { HEADERS_METADATA, METHOD_METADATA } from '@nestjs/common/constants.js'
import { DiscoveryService, MetadataScanner } from '@nestjs/core'
import { Boundary, type RoutePolicy } from '../../boundary/index.ts'
import type { Onlyonce } from '../../door.ts'
import { OnlyonceError } from '../../errors.ts'
import type { NestAccount, NestRoute } from './call.ts'
import { isProtected, POLICY } from './marks.ts'

/** What the module is given. */
export interface OnlyonceModuleOptions {
  // biome-ignore lint/suspicious/noExplicitAny: the store decides what a transaction is.
  readonly once: Onlyonce<any>
  /** Whose request it is, after your guards; nobody's is refused with 401. It is given the platform's request. */
  readonly account: NestAccount
}

export const OPTIONS: unique symbol = Symbol('onlyonce:options')

// biome-ignore lint/complexity/noBannedTypes: Nest's own type of handlers.
type Handler = Function

/** The protected routes of an application. All of them are checked when it starts. */
export class Routes implements OnModuleInit {
  readonly #options: OnlyonceModuleOptions
  readonly #discovery: DiscoveryService
  /** By controller and handler: an inherited handler is another route in each controller. */
  readonly #routes = new WeakMap<object, WeakMap<object, NestRoute<unknown>>>()

  constructor(options: OnlyonceModuleOptions, discovery: DiscoveryService) {
    if (typeof options?.account !== 'function') {
      throw new OnlyonceError('option_invalid', {
        detail: 'OnlyonceModule: account is a function that tells whose request it is.',
      })
    }
    this.#options = options
    this.#discovery = discovery
  }

  onModuleInit(): void {
    const scanner = new MetadataScanner()
    for (const { metatype } of this.#discovery.getControllers()) {
      const prototype: Record<string, Handler> | undefined = metatype?.prototype
      if (prototype === undefined) continue
      for (const name of scanner.getAllMethodNames(prototype)) {
        const handler = prototype[name]!
        if (!Reflect.hasMetadata(METHOD_METADATA, handler)) continue
        if (policyOf(metatype as Type, handler) !== null) this.routeOf(metatype as Type, handler)
      }
    }
  }

  /** The route of a handler; throws where it is not protected as it was meant to be. */
  routeOf(controller: Type, handler: Handler): NestRoute<unknown> {
    const known = this.#routes.get(controller)?.get(handler)
    if (known !== undefined) return known
    const route = this.#make(controller, handler)
    if (!this.#routes.has(controller)) this.#routes.set(controller, new WeakMap())
    this.#routes.get(controller)!.set(handler, route)
    return route
  }

  #make(controller: Type, handler: Handler): NestRoute<unknown> {
    const title = `${controller.name}.${handler.name}`
    const refuse = (detail: string): never => {
      throw new OnlyonceError('option_invalid', { detail: `${title}: ${detail}` })
    }
    if (!isProtected(handler)) refuse(OVERRIDDEN)
    const shared: RoutePolicy | undefined = Reflect.getMetadata(POLICY, controller)
    if (shared?.operation !== undefined) refuse(SHARED_OPERATION)
    const headers: { name: string }[] = Reflect.getMetadata(HEADERS_METADATA, handler) ?? []
    return {
      boundary: new Boundary(this.#options.once, policyOf(controller, handler) ?? {}, title),
      account: this.#options.account,
      headers: headers.map(({ name }) => name.toLowerCase()),
    }
  }
}

const OVERRIDDEN =
  'it takes the place of a handler that @Idempotent() protects, and is not protected itself. Decorate it, or its controller, too.'
const SHARED_OPERATION =
  'the operation is the name of one handler, so that no two share their keys; a controller cannot have one.'

function policyOf(controller: Type, handler: Handler): RoutePolicy | null {
  const shared: RoutePolicy | undefined = Reflect.getMetadata(POLICY, controller)
  const own: RoutePolicy | undefined = Reflect.getMetadata(POLICY, handler)
  return shared === undefined && own === undefined ? null : { ...shared, ...own }
}

Injectable()(Routes)
Inject(OPTIONS)(Routes, undefined, 0)
Inject(DiscoveryService)(Routes, undefined, 1)
