import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import {
  type ArgumentsHost,
  BadRequestException,
  Body,
  type CallHandler,
  type CanActivate,
  Catch,
  Controller,
  type ExecutionContext,
  Get,
  Header,
  HttpCode,
  type HttpServer,
  type NestInterceptor,
  Param,
  type PipeTransform,
  Post,
  Redirect,
  Req,
  Res,
  StreamableFile,
  UnprocessableEntityException,
  UseGuards,
  UseInterceptors,
  UsePipes,
} from '@nestjs/common'
import { BaseExceptionFilter } from '@nestjs/core'
import { finalize, firstValueFrom, map, Subject, tap } from 'rxjs'
import { beforeAll, describe, expect, it } from 'vitest'
import { Idempotency, type IdempotencyContext, Idempotent } from '../../src/http/adapters/nest/index.ts'
import { notExecuted } from '../../src/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { openShop, type Shop } from '../contract/shop.ts'
import { waitUntil } from '../setup/wait.ts'
import { expectProblem, expectReplay } from './expectations.ts'
import { openApp, PLATFORMS } from './servers/nest-app.ts'
import { EARLY_HEADER } from './under-test.ts'

type Tx = IdempotencyContext<PostgresTx>

let shop: Shop
beforeAll(async () => {
  shop = await openShop()
})

describe.each(PLATFORMS)('NestJS on $platform', ({ create }) => {
  describe('What refuses a request before its handler', () => {
    it('leaves no record: a pipe', async () => {
      class Positive implements PipeTransform {
        transform(value: { amount?: number }) {
          if (value.amount !== undefined && value.amount <= 0) throw new BadRequestException('amount')
          return value
        }
      }
      @Controller('things')
      class Things {
        @Post()
        @Idempotent()
        @UsePipes(new Positive())
        create(@Body() body: { amount: number }) {
          return { amount: body.amount }
        }
      }
      const once = shop.open()
      const client = await openApp(create, once, Things)
      const key = randomUUID()
      expect((await client.send({ key, body: { amount: -1 } })).status).toBe(400)
      const id = { account: 'acct_1', operation: 'POST /things', key }
      expect((await once.explain(id)).state).toBe('none')
      // The corrected request may have the same key: nothing is known of the one that was refused.
      expect((await client.send({ key, body: { amount: 1 } })).json()).toEqual({ amount: 1 })
      expect((await once.explain(id)).state).toBe('completed')
    })

    it('leaves no record, and no replay to whoever may no longer see it: a guard', async () => {
      let revoked = true
      let runs = 0
      class Guard implements CanActivate {
        canActivate() {
          return !revoked
        }
      }
      @Controller('things')
      @UseGuards(new Guard())
      @Idempotent()
      class Things {
        @Post()
        create() {
          runs += 1
          return { runs }
        }
      }
      const client = await openApp(create, shop.open(), Things)
      const key = randomUUID()
      expect((await client.send({ key })).status).toBe(403)
      revoked = false
      expect((await client.send({ key })).json()).toEqual({ runs: 1 })
      revoked = true
      const again = await client.send({ key })
      expect([again.status, again.headers['idempotent-replayed']]).toEqual([403, undefined])
    })
  })

  describe('What a handler throws', () => {
    it('rolls a transaction back, whatever its status', async () => {
      let poor = true
      @Controller('things')
      class Things {
        @Post()
        @Idempotent({ protect: 'transaction' })
        async create(@Body() body: { note: string }, @Idempotency() { tx }: Tx) {
          await tx.query('INSERT INTO effects (note) VALUES ($1)', [body.note])
          if (poor) throw new UnprocessableEntityException('too poor')
          return body
        }
      }
      const client = await openApp(create, shop.open(), Things)
      const key = randomUUID()
      const body = { note: randomUUID() }
      expect((await client.send({ key, body })).status).toBe(422)
      expect(await shop.countEffects(body.note)).toBe(0)
      poor = false
      expect((await client.send({ key, body })).status).toBe(201)
      const again = await client.send({ key, body })
      expect([again.status, again.headers['idempotent-replayed']]).toEqual([201, 'true'])
      expect(await shop.countEffects(body.note)).toBe(1)
    })

    it('is stored as the filters answered it, and notExecuted() is not', async () => {
      const errors = [notExecuted(new Error('out of stock')), new UnprocessableEntityException('too poor')]
      let runs = 0
      @Controller('things')
      class Things {
        @Post()
        @Idempotent()
        async create() {
          runs += 1
          throw errors[runs - 1]!
        }
      }
      const client = await openApp(create, shop.open(), Things)
      const key = randomUUID()
      const refused = await client.send({ key })
      expectProblem(refused, 'not_executed')
      const first = await client.send({ key })
      expect(first.json()).toMatchObject({ statusCode: 422, message: 'too poor' })
      expectReplay(first, await client.send({ key }))
      expect(runs).toBe(2)
    })
  })

  describe('What Nest makes of a result', () => {
    it('is stored with what other interceptors and decorators add, and they see an end of every replay', async () => {
      const ends: unknown[] = []
      class Envelope implements NestInterceptor {
        intercept(_: ExecutionContext, next: CallHandler) {
          return next.handle().pipe(
            // Fails for a result that is not there, which must not harm the replay.
            map((data) => ({ data, id: data.id })),
            finalize(() => ends.push('end')),
          )
        }
      }
      @Controller('things')
      @UseInterceptors(new Envelope())
      class Things {
        @Post()
        @HttpCode(202)
        @Header('Content-Language', 'de')
        @Header('X-Handler', 'mine')
        @Idempotent()
        create() {
          return { id: randomUUID() }
        }
      }
      const client = await openApp(create, shop.open(), Things)
      const key = randomUUID()
      const first = await client.send({ key })
      expect(first).toMatchObject({ status: 202, headers: { 'content-language': 'de', 'x-handler': 'mine' } })
      expect(first.json().id).toBe(first.json().data.id)
      const again = await client.send({ key })
      expectReplay(first, again)
      expect(again.headers['x-handler']).toBeUndefined()
      await waitUntil('the interceptor has seen both ends', () => ends.length === 2)
      const reused = await client.send({ key, body: { other: true } })
      expectProblem(reused, 'key_reused')
      expect(reused.headers['content-language']).toBeUndefined()
      expect(reused.headers[EARLY_HEADER[0]]).toBe(EARLY_HEADER[1])
      // The connection has not suffered from what was written after the replay.
      expect((await client.send({ key })).body).toEqual(first.body)
    })

    it('is sent once: after a replay nothing fails, nothing is written and no other status is told', async () => {
      const seen: { errors: unknown[]; warnings: unknown[]; statuses: number[] } = {
        errors: [],
        warnings: [],
        statuses: [],
      }
      @Controller('things')
      class Things {
        @Post()
        @HttpCode(200)
        @Idempotent()
        create() {
          return { id: randomUUID() }
        }
      }
      const client = await openApp(create, shop.open(), Things, {
        prepare(app) {
          const told = (error: unknown) => seen.errors.push(error)
          app.useGlobalFilters(new Listening(told, app.getHttpAdapter()))
          app.useGlobalInterceptors({
            intercept: (_, next) => next.handle().pipe(tap(() => failAt(statuses))),
          })
          const statuses = seen.statuses
          app.use((_: unknown, response: ServerResponse, next: () => void) => {
            response.once('close', () => statuses.push(response.statusCode))
            next()
          })
          // Fastify tells in its log that something was to be sent twice.
          const { log } = app.getHttpAdapter().getInstance()
          if (log !== undefined) log.warn = (warning: unknown) => seen.warnings.push(warning)
        },
      })
      const key = randomUUID()
      const first = await client.send({ key })
      expectReplay(first, await client.send({ key }))
      // The third is a replay too, and something after it fails.
      expectReplay(first, await client.send({ key }))
      await waitUntil('all responses are closed', () => seen.statuses.length === 3)
      expect(seen).toEqual({ statuses: [200, 200, 200], warnings: [], errors: [expect.any(TypeError)] })
    })

    it('goes nowhere when its time was over', async () => {
      const goOn = new Subject<string>()
      const errors: unknown[] = []
      let ended = 0
      @Controller('things')
      class Things {
        @Post()
        @Idempotent({ protect: 'transaction', deadlineMs: 50 })
        create() {
          return firstValueFrom(goOn.pipe(finalize(() => setImmediate(() => (ended += 1)))))
        }
      }
      const client = await openApp(create, shop.open(), Things, {
        prepare: (app) =>
          app.useGlobalFilters(new Listening((error) => errors.push(error), app.getHttpAdapter())),
      })
      expectProblem(await client.send(), 'deadline_exceeded')
      goOn.next('too late')
      await waitUntil('the handler has ended, and Nest with it', () => ended === 1)
      expect(errors).toEqual([])
      expectProblem(await client.send(), 'deadline_exceeded')
    })

    it('may be a redirect, or written by the handler itself', async () => {
      @Controller('things')
      @Idempotent()
      class Things {
        @Post('redirect')
        @Redirect('/elsewhere', 303)
        redirect() {}

        @Post('written')
        // biome-ignore lint/suspicious/noExplicitAny: each platform has a response of its own.
        written(@Res() response: any) {
          response.status(207).header('content-type', 'text/plain').send(randomUUID())
        }
      }
      const client = await openApp(create, shop.open(), Things)
      for (const [path, status] of [
        ['/things/redirect', 303],
        ['/things/written', 207],
      ] as const) {
        const sent = { path, key: randomUUID() }
        const first = await client.send(sent)
        expect(first.status).toBe(status)
        expectReplay(first, await client.send(sent))
      }
    })
  })

  describe('A client that hangs up changes nothing', () => {
    it.each(['observable', 'file'] as const)('of a result that is an %s', async (kind) => {
      const entered = new Subject<void>()
      const goOn = new Subject<string>()
      let runs = 0
      @Controller('things')
      class Things {
        @Post()
        @Idempotent()
        create() {
          runs += 1
          queueMicrotask(() => entered.next())
          return kind === 'observable' ? goOn : new StreamableFile(Readable.from(late(goOn)))
        }
      }
      const once = shop.open()
      const client = await openApp(create, once, Things)
      const key = randomUUID()
      const began = firstValueFrom(entered)
      const request = client.open({ key })
      const failed = new Promise((resolve) => request.once('error', resolve))
      request.end('{}')
      await began
      request.destroy()
      await failed
      const state = async () =>
        (await once.explain({ account: 'acct_1', operation: 'POST /things', key })).state
      expect(await state()).toBe('in_progress')
      await waitUntil('somebody listens', () => goOn.observed)
      goOn.next('done')
      goOn.complete()
      await waitUntil('the reply is stored', async () => (await state()) === 'completed')
      const again = await client.send({ key })
      expect([again.status, again.text, runs]).toEqual([201, 'done', 1])
    })
  })

  it('protects what its methods say, and leaves the rest alone', async () => {
    @Controller('shops/:shop/things')
    @Idempotent({ key: 'optional' })
    class Things {
      @Get()
      list(@Idempotency() once?: Tx) {
        return { once: once ?? null }
      }

      @Post(':id')
      @Idempotent({ operation: 'things.change', header: 'x-key' })
      // biome-ignore lint/suspicious/noExplicitAny: each platform has a request of its own.
      change(@Param('id') id: string, @Idempotency() once: Tx | undefined, @Req() request: any) {
        return { id, key: once?.key ?? null, operation: once?.operation, same: request.idempotency === once }
      }
    }
    const client = await openApp(create, shop.open(), Things)
    const path = '/shops/1/things'
    expect((await client.send({ method: 'GET', path, body: null })).json()).toEqual({ once: null })
    const unprotected = await client.send({ path: `${path}/7` })
    expect(unprotected.json()).toEqual({ id: '7', key: null, same: true })
    const headers = { 'x-key': randomUUID() }
    const first = await client.send({ path: `${path}/7`, headers })
    expect(first.json()).toEqual({ id: '7', key: headers['x-key'], operation: 'things.change', same: true })
    expectReplay(first, await client.send({ path: `${path}/7`, headers }))
    expectProblem(await client.send({ path: '/shops/2/things/7', headers }), 'key_reused')
    // Called by code, in a test for example, the handler is the handler.
    expect(new Things().list()).toEqual({ once: null })
  })
})

/** Fails at the third request. */
function failAt(statuses: readonly number[]): void {
  if (statuses.length === 2) throw new TypeError('an interceptor of the application failed')
}

@Catch()
class Listening extends BaseExceptionFilter {
  readonly #told: (error: unknown) => void
  constructor(told: (error: unknown) => void, adapter: HttpServer) {
    super(adapter)
    this.#told = told
  }
  override catch(error: unknown, host: ArgumentsHost): void {
    this.#told(error)
    // As many filters do: without a look at what was sent before.
    this.applicationRef!.reply(host.getArgByIndex(1), { failed: true }, 500)
  }
}

async function* late(subject: Subject<string>): AsyncGenerator<string> {
  yield await firstValueFrom(subject)
}
