import { Inject, Injectable, type OnModuleInit, RequestMethod, type Type } from '@nestjs/common'
import {
  HEADERS_METADATA,
  HOST_METADATA,
  METHOD_METADATA,
  PATH_METADATA,
  VERSION_METADATA,
} from '@nestjs/common/constants.js'
import { DiscoveryService, MetadataScanner } from '@nestjs/core'
import { OnlyonceError } from '../../../core/errors.ts'
import { refuseUnknown } from '../../../core/options.ts'
import type { Onlyonce } from '../../../onlyonce/door.ts'
import { Boundary, type RoutePolicy } from '../../index.ts'
import { checkAccount } from '../account.ts'
import { PatternsSeen } from '../patterns-seen.ts'
import { constraintsText } from '../place.ts'
import type { NestAccount, NestRoute } from './call.ts'
import { isProtected, POLICY, wantsTx } from './marks.ts'
import type { NestBound } from './platform.ts'

/** What the module is given. */
export interface OnlyonceModuleOptions {
  // biome-ignore lint/suspicious/noExplicitAny: the store decides what a transaction is.
  readonly once: Onlyonce<any>
  /**
   * Whose request it is, after your guards; one without an account is refused with 401. The function is given the platform's request.
   * Or the only account, where a service has one tenant.
   */
  readonly account: NestAccount
}

/** Tokens of the injector that decorators of another copy of the package find too. */
export const OPTIONS: unique symbol = Symbol.for('onlyonce.nest_options')
export const ROUTES: unique symbol = Symbol.for('onlyonce.nest_routes')

// biome-ignore lint/complexity/noBannedTypes: Nest's own type of handlers.
type Handler = Function

/** The protected routes of an application. All of them are checked when it starts. */
export class Routes implements OnModuleInit {
  readonly #options: OnlyonceModuleOptions
  readonly #discovery: DiscoveryService
  readonly #seen = new PatternsSeen()
  /** By controller and name: an inherited handler is another route in each controller. */
  readonly #routes = new WeakMap<object, Map<string, NestRoute<unknown>>>()

  constructor(options: OnlyonceModuleOptions, discovery: DiscoveryService) {
    refuseUnknown('OnlyonceModule', options, { once: true, account: true })
    checkAccount('OnlyonceModule', options.account)
    this.#options = options
    this.#discovery = discovery
  }

  onModuleInit(): void {
    const scanner = new MetadataScanner()
    for (const { metatype } of this.#discovery.getControllers()) {
      if (typeof metatype !== 'function' || metatype.prototype === undefined) continue
      const controller = metatype as Type
      for (const name of scanner.getAllMethodNames(controller.prototype)) {
        const handler = controller.prototype[name]
        if (!Reflect.hasMetadata(METHOD_METADATA, handler)) continue
        if (hasPolicy(controller) || hasPolicy(handler)) this.routeOf(controller, name)
      }
    }
  }

  /**
   * The route of a handler; throws where it is not protected as it was meant to be. By name, because tracing puts handlers
   * of its own around those of the controllers when the routes are made.
   */
  routeOf(controller: Type, name: string): NestRoute<unknown> {
    const known = this.#routes.get(controller)?.get(name)
    if (known !== undefined) return known
    const route = this.#make(controller, name)
    if (!this.#routes.has(controller)) this.#routes.set(controller, new Map())
    this.#routes.get(controller)!.set(name, route)
    return route
  }

  #make(controller: Type, name: string): NestRoute<unknown> {
    const title = `${controller.name}.${name}`
    const refuse = (detail: string): never => {
      throw new OnlyonceError('option_invalid', { detail: `${title}: ${detail}` })
    }
    const handler: Handler | undefined = controller.prototype[name]
    if (handler === undefined || !isProtected(handler)) return refuse(REPLACED)
    const shared: RoutePolicy | undefined = Reflect.getMetadata(POLICY, controller)
    if (shared?.operation !== undefined) refuse(SHARED_OPERATION)
    const headers: { name: string }[] = Reflect.getMetadata(HEADERS_METADATA, handler) ?? []
    const own: RoutePolicy = Reflect.getMetadata(POLICY, handler) ?? {}
    const boundary = new Boundary(this.#options.once, own, title, shared)
    if (wantsTx(controller.prototype, name) && boundary.policy.protect !== 'transaction') refuse(NO_TX)
    if (isNamedByPath(boundary, handler)) refuseSeveralPaths(title, controller, handler)
    return {
      boundary,
      seen: this.#seen,
      account: this.#options.account,
      bound: boundOf(controller, handler),
      headers: headers.map((header) => header.name.toLowerCase()),
    }
  }
}

const REPLACED =
  'it has taken the place of the handler that @Idempotent() protects. If it overrides that handler, decorate it too; if another decorator has replaced it, put @Idempotent() above that one.'
const NO_TX = "@Tx() needs a transaction. Pass protect: 'transaction' to @Idempotent()."
const SHARED_OPERATION =
  'the operation is the name of one handler, so that no two share their keys; a controller cannot have one.'

/** A controller may have handlers of other methods, which are not protected. */
function isNamedByPath({ policy }: Boundary<unknown>, handler: Handler): boolean {
  const method = RequestMethod[Reflect.getMetadata(METHOD_METADATA, handler)]!
  return policy.operation === null && (method === 'ALL' || policy.methods.has(method))
}

/** A list of paths is several routes of one handler, each with a name of its own. Known at the start, so told then. */
function refuseSeveralPaths(title: string, controller: Type, handler: Handler): void {
  for (const place of [controller, handler]) {
    const paths = new Set([Reflect.getMetadata(PATH_METADATA, place)].flat())
    if (paths.size > 1)
      throw new OnlyonceError('operation_ambiguous', { detail: `See ${title}: ${[...paths].join(', ')}.` })
  }
}

/**
 * Versions that are asked for in a header, and hosts, are not in the pattern of a route: several handlers may share it. What a
 * handler says of its version comes before what its controller says, as in Nest.
 */
function boundOf(controller: Type, handler: Handler): NestBound {
  const host: unknown = Reflect.getMetadata(HOST_METADATA, controller)
  const version: unknown =
    Reflect.getMetadata(VERSION_METADATA, handler) ?? Reflect.getMetadata(VERSION_METADATA, controller)
  return { constraints: constraintsText({ host, version }), byHost: host !== undefined }
}

function hasPolicy(place: object): boolean {
  return Reflect.hasMetadata(POLICY, place)
}

Injectable()(Routes)
Inject(OPTIONS)(Routes, undefined, 0)
Inject(DiscoveryService)(Routes, undefined, 1)
