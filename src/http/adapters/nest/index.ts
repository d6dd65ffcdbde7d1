/**
 * Idempotency keys for NestJS 11, on Express and on Fastify: `onlyonce/nest`.
 *
 * @example
 * @Module({ imports: [OnlyonceModule.forRoot({ once, account: (request) => request.user.account })] })
 * class AppModule {}
 * const app = await NestFactory.create(AppModule, { rawBody: true })
 */
export type { IdempotencyContext, RequestContext, RoutePolicy } from '../../index.ts'
export { keepRawBody } from '../node/body.ts'
export type { NestAccount } from './call.ts'
export { Idempotency, Idempotent, Tx } from './decorators.ts'
export { OnlyonceModule, type OnlyonceModuleAsyncOptions } from './module.ts'
export type { OnlyonceModuleOptions } from './routes.ts'
