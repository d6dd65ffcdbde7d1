import { randomUUID } from 'node:crypto'
import {
  Body,
  Controller,
  Inject,
  type MessageEvent,
  Post,
  RequestMapping,
  RequestMethod,
  Sse,
  type Type,
} from '@nestjs/common'
import { RouterExecutionContext } from '@nestjs/core/router/router-execution-context.js'
import type { NestExpressApplication } from '@nestjs/platform-express'
import { type Observable, of } from 'rxjs'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { LIMITS } from '../../src/entries/limits.ts'
import type { Signal } from '../../src/entries/observe.ts'
import {
  Idempotency,
  type IdempotencyContext,
  Idempotent,
  OnlyonceModule,
} from '../../src/http/adapters/nest/index.ts'
import type { RoutePolicy } from '../../src/http/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { openShop, type Shop } from '../contract/shop.ts'
import { expectProblem, expectReplay } from './expectations.ts'
import { onExpress } from './servers/nest.ts'
import { accountInHeader, openApp, PLATFORMS } from './servers/nest-app.ts'

let shop: Shop
beforeAll(async () => {
  shop = await openShop()
})

function controllerWith(policy: Omit<RoutePolicy, 'operation' | 'input'>): Type {
  @Controller('things')
  class Things {
    @Post()
    @Idempotent(policy)
    create(@Body() body: unknown) {
      return { body, id: randomUUID() }
    }
  }
  return Things
}

describe.each(PLATFORMS)('NestJS on $platform starts', ({ create }) => {
  const start = (given: Parameters<typeof openApp>[2]) => openApp(create, shop.open(), given)
  const refused = (detail: string) => ({ code: 'option_invalid', message: expect.stringContaining(detail) })

  it('not with a policy that is wrong, and says which handler has it', async () => {
    const wrong = controllerWith({ protect: 'transaction', stream: true })
    await expect(start(wrong)).rejects.toMatchObject(refused('Things.create: stream'))
    const unknown = controllerWith({ nonsense: true } as RoutePolicy)
    await expect(start(unknown)).rejects.toMatchObject(
      refused('Things.create: its policy has no option nonsense'),
    )
  })

  it('with what a handler makes no use of as a default of its controller, and not as its own', async () => {
    @Controller('things')
    @Idempotent({ leaseMs: 5_000, exclusive: true })
    class Things {
      @Post()
      @Idempotent({ protect: 'transaction' })
      create() {}
    }
    await start(Things)
    const wrong = controllerWith({ exclusive: true })
    await expect(start(wrong)).rejects.toMatchObject(
      refused('Things.create: exclusive concerns transactions'),
    )
  })

  it('not with an operation that all handlers of a controller would share', async () => {
    @Controller('things')
    @Idempotent({ operation: 'things.all' })
    class Things {
      @Post()
      create() {}
    }
    await expect(start(Things)).rejects.toMatchObject(refused('Things.create: the operation'))
  })

  it('not with a handler that takes the place of a protected one, unprotected', async () => {
    @Idempotent()
    class Base {
      @Post()
      create(): unknown {
        return 'base'
      }
    }
    @Controller('things')
    class Things extends Base {
      @Post()
      override create() {
        return 'derived'
      }
    }
    await expect(start(Things)).rejects.toMatchObject(refused('Things.create: it has taken the place'))
  })

  it('not with a decorator around the protection, which could keep something from it', async () => {
    const Around: MethodDecorator = (_, __, descriptor) => {
      const inner = descriptor.value as (...args: unknown[]) => unknown
      const around = (body: unknown) => inner(body)
      descriptor.value = Object.setPrototypeOf(around, inner)
    }
    @Controller('things')
    class Things {
      @Post()
      @Around
      @Idempotent()
      create() {}
    }
    await expect(start(Things)).rejects.toMatchObject(refused('put @Idempotent() above that one'))
  })

  it('with tracing, which puts handlers of its own around those of controllers', async () => {
    const { create: untraced } = RouterExecutionContext.prototype
    onTestFinished(() => {
      RouterExecutionContext.prototype.create = untraced
    })
    let traced = 0
    RouterExecutionContext.prototype.create = function (instance, callback, name, ...rest) {
      function around(this: unknown, ...args: unknown[]) {
        traced += 1
        return callback.apply(this, args as [])
      }
      Object.defineProperty(around, 'name', { value: name })
      for (const key of Reflect.getMetadataKeys(callback)) {
        Reflect.defineMetadata(key, Reflect.getMetadata(key, callback), around)
      }
      return untraced.call(this, instance, around, name, ...rest)
    }
    const client = await start(controllerWith({}))
    const key = randomUUID()
    expectReplay(await client.send({ key }), await client.send({ key }))
    expect(traced).toBe(2)
  })

  it('not without an account', async () => {
    const imports = [OnlyonceModule.forRoot({ once: shop.open(), account: undefined as never })]
    await expect(start({ imports })).rejects.toMatchObject(refused('OnlyonceModule: account'))
  })

  it('with handlers that a controller inherits, each controller with keys of its own', async () => {
    class Base {
      @RequestMapping({ method: RequestMethod.POST })
      create(@Idempotency() once?: IdempotencyContext<PostgresTx>) {
        return { operation: once?.operation, made_by: this.constructor.name }
      }
    }
    @Controller('apples')
    @Idempotent()
    class Apples extends Base {}
    @Controller('pears')
    @Idempotent({ key: 'optional' })
    class Pears extends Base {}
    const once = shop.open()
    const imports = [OnlyonceModule.forRoot({ once, account: accountInHeader })]
    const client = await start({ imports, controllers: [Apples, Pears] })
    const key = randomUUID()
    const apple = await client.send({ path: '/apples', key })
    expect(apple.json()).toEqual({ operation: 'POST /apples', made_by: 'Apples' })
    const pear = await client.send({ path: '/pears', key })
    expect(pear.json()).toEqual({ operation: 'POST /pears', made_by: 'Pears' })
    expectReplay(pear, await client.send({ path: '/pears', key }))
    expectProblem(await client.send({ path: '/apples', key: null }), 'key_missing')
    expect((await client.send({ path: '/pears', key: null })).json()).toEqual({ made_by: 'Pears' })
  })

  it('with options that are made of other providers, and with constructors that are given some', async () => {
    const STORE = 'store'
    class Counter {
      count = 0
    }
    @Controller('things')
    class Things {
      readonly #counter: Counter
      constructor(@Inject(Counter) counter: Counter) {
        this.#counter = counter
      }
      @Post()
      @Idempotent()
      create() {
        this.#counter.count += 1
        return { count: this.#counter.count }
      }
    }
    const client = await start({
      imports: [
        OnlyonceModule.forRootAsync({
          imports: [{ module: class Stores {}, providers: [provided(STORE)], exports: [STORE] }],
          inject: [STORE],
          useFactory: async (once) => ({ once, account: accountInHeader }),
        }),
      ],
      controllers: [Things],
      providers: [Counter],
    })
    const key = randomUUID()
    const first = await client.send({ key })
    expect(first.json()).toEqual({ count: 1 })
    expectReplay(first, await client.send({ key }))
  })

  it('with events that are sent by the same controller', async () => {
    @Controller('things')
    @Idempotent()
    class Things {
      @Sse('events')
      events(): Observable<MessageEvent> {
        return of({ data: 'one' }, { data: 'two' })
      }
    }
    const client = await start(Things)
    const { text } = await client.send({ method: 'GET', path: '/things/events', body: null })
    expect(text).toMatch(/data: one[\s\S]*data: two/)
  })

  it('without raw bodies, and tells at the first use how to get them, or compares what was parsed', async () => {
    const told: string[] = []
    const signal = (given: Signal) => void (given.signal === 'mistake' && told.push(given.message))
    const once = shop.open({ observe: { signal } })
    const raw = await openApp(create, once, controllerWith({}), { rawBody: false })
    expectProblem(await raw.send(), 'raw_body_missing')
    expect(told).toEqual([expect.stringContaining('{ rawBody: true }')])
    expect((await raw.send({ body: null })).status).toBe(201)

    const policy: RoutePolicy = { fingerprint: { body: 'parsed' } }
    const parsed = await openApp(create, once, controllerWith(policy), { rawBody: false })
    const key = randomUUID()
    const first = await parsed.send({ key, body: '{"a":1,"b":2}' })
    expectReplay(first, await parsed.send({ key, body: '{ "b": 2, "a": 1 }' }))
    expectProblem(await parsed.send({ key, body: '{"a":1}' }), 'key_reused')
  })

  it('twice with the same controller, each application with a store of its own', async () => {
    const Things = controllerWith({})
    const other = await openShop()
    const first = await openApp(create, shop.open(), Things)
    const second = await openApp(create, other.open(), Things)
    const key = randomUUID()
    const made = [await first.send({ key }), await second.send({ key })]
    expect(made.map(({ headers }) => headers['idempotent-replayed'])).toEqual([undefined, undefined])
    expectReplay(made[0]!, await first.send({ key }))
    expectReplay(made[1]!, await second.send({ key }))
  })
})

function provided(provide: string) {
  return { provide, useFactory: () => shop.open() }
}

it('refuses a body over the limit of the layer, also where a parser takes more', async () => {
  const client = await openApp(onExpress, shop.open(), controllerWith({}), {
    prepare: (app) => (app as NestExpressApplication).useBodyParser('json', { limit: '4mb' }),
  })
  const text = 'x'.repeat(LIMITS.bodySizeMaxBytes)
  expectProblem(await client.send({ body: { text } }), 'body_too_large')
  expect((await client.send({ body: { text: text.slice(1_000) } })).status).toBe(201)
})
