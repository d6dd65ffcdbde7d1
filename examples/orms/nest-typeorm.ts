/**
 * The same in NestJS and TypeORM. In a project of your own, import from 'onlyonce', 'onlyonce/nest' and 'onlyonce/orm' instead of from src/, and let TypeOrmModule make the
 * data source.
 */
import { Body, Controller, type DynamicModule, HttpException, Inject, Module, Post } from '@nestjs/common'
import { type DataSource, type EntityManager, EntitySchema } from 'typeorm'
import {
  Idempotency,
  type IdempotencyContext,
  Idempotent,
  OnlyonceModule,
} from '../../src/http/adapters/nest/index.ts'
import type { Onlyonce } from '../../src/index.ts'
import { typeormManager } from '../../src/orm/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'

interface Wallet {
  owner: string
  amount: number
}
interface Payout {
  id: string
  owner: string
  amount: number
}

export const Wallet = new EntitySchema<Wallet>({
  name: 'wallets',
  columns: { owner: { type: 'text', primary: true }, amount: { type: 'int' } },
})
export const Payout = new EntitySchema<Payout>({
  name: 'payouts',
  columns: {
    id: { type: 'uuid', primary: true, generated: 'uuid' },
    owner: { type: 'text' },
    amount: { type: 'int' },
  },
})

/** A layer that knows nothing of keys: it is given the manager to work with. */
async function payOut(manager: EntityManager, owner: string, amount: number): Promise<Payout | null> {
  return await manager.transaction(async (inner) => {
    const wallet = await inner.findOne(Wallet, { where: { owner }, lock: { mode: 'pessimistic_write' } })
    if (wallet === null || wallet.amount < amount) return null
    await inner.save(Wallet, { owner, amount: wallet.amount - amount })
    return await inner.save(Payout, { owner, amount })
  })
}

const DATA_SOURCE = 'DATA_SOURCE'

@Controller('payouts')
class Payouts {
  readonly #dataSource: DataSource

  constructor(@Inject(DATA_SOURCE) dataSource: DataSource) {
    this.#dataSource = dataSource
  }

  @Post()
  @Idempotent({ protect: 'transaction', operation: 'payouts.create' })
  async create(
    @Body() { amount }: { amount: number },
    @Idempotency() { tx, account }: IdempotencyContext<PostgresTx>,
  ): Promise<Payout> {
    const manager = typeormManager(tx, this.#dataSource)
    const payout = await payOut(manager, account, amount)
    if (payout === null) throw new HttpException('not enough', 402)
    return payout
  }
}

@Module({})
class PayoutsModule {}

export function payoutsModule(once: Onlyonce<PostgresTx>, dataSource: DataSource): DynamicModule {
  return {
    module: PayoutsModule,
    imports: [OnlyonceModule.forRoot({ once, account: (request) => request.headers['x-demo-account'] })],
    controllers: [Payouts],
    providers: [{ provide: DATA_SOURCE, useValue: dataSource }],
  }
}
