/**
 * What the blocks of the documentation take as given: services, values and functions of the reader. Names of the library are not here: a
 * block imports those itself.
 */
import type pg from 'pg'
import type { Registry } from 'prom-client'
import type { expect as Expect } from 'vitest'
import type { Logger } from '../../../src/entries/observe.ts'
import type { Onlyonce, Operation, Queryable, Store } from '../../../src/index.ts'
import type { operator } from '../../../src/operator/index.ts'
import type { Destination, RunJob } from '../../../src/outbox/index.ts'
import type { PostgresTx } from '../../../src/store/postgres/index.ts'

export interface CreatePayment {
  readonly amount: number
}
export interface Transfer {
  readonly amount: number
}
interface Payment {
  readonly id: string
}
interface Charge {
  readonly id: string
}
type Found<T> = { readonly status: 'found'; readonly result: T } | { readonly status: 'not_found' }

export declare const once: Onlyonce<PostgresTx>
export declare const store: Store<PostgresTx>
export declare const secret: string
export declare const connectionString: string
export declare const databaseUrl: string
export declare const pool: pg.Pool
export declare const client: pg.PoolClient
export declare const tx: PostgresTx
export declare const expect: typeof Expect
export declare const logger: Logger
export declare const registry: Registry

export declare const account: string
export declare const operation: string
export declare const key: string
export declare const id: string
export declare const url: string
export declare const input: CreatePayment
export declare const call: { account: string; operation: string; key: string; input: CreatePayment }
export declare const work: (tx: Queryable) => Promise<{ id: string }>
export declare const retryLater: () => Promise<void>

export declare const createPayment: Operation<CreatePayment, Payment>
export declare const destinations: Record<string, Destination>
export declare const jobs: Record<string, RunJob>
export declare const sendReceipt: RunJob
export declare const payments: { insert(tx: Queryable, input: CreatePayment): Promise<Payment> }
export declare const ledger: { post(tx: Queryable, ...entries: unknown[]): Promise<void> }
export declare const present: (payment: Payment, charge: Charge) => { id: string }
export declare const gateway: {
  charge(payment: Payment, options: { key: string; signal: AbortSignal }): Promise<Charge>
  findByKey(key: string): Promise<Found<Charge>>
}
export declare const capture: (tx: Queryable, input: CreatePayment) => Promise<void>
export declare const pay: (tx: Queryable, input: CreatePayment) => Promise<{ id: string }>
interface WarehouseOrder {
  readonly id: string
  readonly state: 'being_made' | 'refused' | 'made'
}
export declare const warehouse: {
  reserve(input: CreatePayment, options: { signal: AbortSignal }): Promise<WarehouseOrder>
  create(order: unknown, options: { reference: string }): Promise<WarehouseOrder>
  findByReference(
    account: string,
    reference: string,
    options: { signal: AbortSignal },
  ): Promise<WarehouseOrder | null>
}
type TransferCall = (input: Transfer, key: string) => Promise<{ id: string; declined: boolean; why: string }>
export declare const bank: { debit: TransferCall; creditBack: TransferCall }
export declare const other: { credit: TransferCall }
export declare const find: (context: {
  key: string
}) => Promise<Found<{ id: string; declined: boolean; why: string }>>
export declare const event: {
  readonly id: string
  readonly metadata: { readonly key: string }
  readonly charge: Charge
}
export declare const events: unknown[]
export declare const index: (events: readonly unknown[]) => Promise<void>
export declare const mail: {
  send(payload: unknown, options: { messageId: string; signal: AbortSignal }): Promise<void>
}
export declare const producer: {
  send(batch: { topic: string; messages: { key: string; value: string }[] }): Promise<void>
}
export declare const settle: (account: string, event: unknown) => Promise<void>
export declare const current: string
export declare const before: string
export declare const oldKey: Buffer
export declare const newKey: Buffer
export declare const desk: ReturnType<typeof operator>
export declare const by: string
export declare const why: string

/** What an ORM gives, as far as the blocks use it. */
export declare const drizzle: (pool: pg.Pool) => {
  insert(table: object): { values(row: object): { returning(): Promise<{ id: string }[]> } }
}
export declare const transfers: object
interface PrismaTransfers {
  readonly $queryRawUnsafe: (text: string, ...values: unknown[]) => Promise<unknown>
  readonly transfer: { create(call: { data: object }): Promise<{ id: string }> }
}
export declare const prisma: {
  readonly $transaction: (work: (tx: PrismaTransfers) => Promise<void>) => Promise<void>
}
