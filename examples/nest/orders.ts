import { randomUUID } from 'node:crypto'
import { BadRequestException, Body, Controller, HttpCode, Post, UseGuards } from '@nestjs/common'
import { Idempotency, Idempotent, type RequestContext, Tx } from '../../src/http/adapters/nest/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { ApiKeyGuard } from './api-key.guard.ts'

interface NewOrder {
  readonly item: string
  /** In minor units, for example cents. */
  readonly amount: number
}

/** A pipe runs before the key is claimed: a request that is wrong in itself leaves no record. */
const checkOrder = {
  transform(body: unknown): NewOrder {
    const { item, amount } = (body ?? {}) as Partial<NewOrder>
    if (typeof item !== 'string' || !Number.isSafeInteger(amount) || amount! < 1) {
      throw new BadRequestException('Send an item and an amount in minor units.')
    }
    return { item, amount: amount! }
  },
}

@Controller('orders')
@UseGuards(ApiKeyGuard)
export class Orders {
  /** Everything it does is in `tx`, so it happens together with the record of its key. A throw rolls both back. */
  @Post()
  @Idempotent({ protect: 'transaction', operation: 'orders.create' })
  async create(
    @Body(checkOrder) { item, amount }: NewOrder,
    @Tx() tx: PostgresTx,
    @Idempotency() { account }: RequestContext,
  ) {
    const id = randomUUID()
    await tx.query('INSERT INTO orders (customer, id, item, amount) VALUES ($1, $2, $3, $4)', [
      account,
      id,
      item,
      amount,
    ])
    return { id, item, amount }
  }

  /** Calls another system, which no rollback undoes: the key is claimed first, and the answer is stored. */
  @Post('quotes')
  @HttpCode(200)
  @Idempotent()
  async quote(@Body(checkOrder) { item, amount }: NewOrder) {
    return { quote: await askWarehouse(item, amount) }
  }
}

/** Stands for a call over the network. */
async function askWarehouse(item: string, amount: number): Promise<string> {
  return `${item} for ${amount}: ${randomUUID()}`
}
