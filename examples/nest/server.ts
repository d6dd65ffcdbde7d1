/**
 * Orders that are placed once, however often they are sent, in NestJS. In a project of your own, import from 'onlyonce' and
 * 'onlyonce/nest' instead of from src/. It needs DATABASE_URL, and in production ONLYONCE_SECRET. `PLATFORM=fastify` runs
 * the same on Fastify.
 */
import { Module, type OnApplicationShutdown } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { ExpressAdapter } from '@nestjs/platform-express'
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify'
import pg from 'pg'
import { OnlyonceModule } from '../../src/http/adapters/nest/index.ts'
import { onlyonce } from '../../src/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { Orders } from './orders.ts'

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL })
// An idle connection that breaks is replaced at its next use; unheard, the event would end the process.
pool.on('error', (error) => console.error(`A database connection was lost: ${error.message}`))
await pool.query(
  'CREATE TABLE IF NOT EXISTS orders (customer text, id uuid, item text, amount bigint, PRIMARY KEY (customer, id))',
)
const once = onlyonce({ store: postgres({ pool }), secret: process.env.ONLYONCE_SECRET })
await once.start()

@Module({
  imports: [OnlyonceModule.forRoot({ once, account: (request) => request.customer })],
  controllers: [Orders],
})
class AppModule implements OnApplicationShutdown {
  /** No requests come any more: what still runs is waited for, and then the database is left. */
  async onApplicationShutdown(): Promise<void> {
    await once.close()
    await pool.end()
    console.log('Closed.')
  }
}

const adapter = process.env.PLATFORM === 'fastify' ? new FastifyAdapter() : new ExpressAdapter()
// The fingerprint is over the bytes of a body, which Nest keeps only where it is told to.
const app = await NestFactory.create<NestFastifyApplication>(AppModule, adapter as FastifyAdapter, {
  rawBody: true,
  logger: ['error', 'warn'],
})
app.enableShutdownHooks()
await app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1')
console.log(`Listening on ${await app.getUrl()}`)
