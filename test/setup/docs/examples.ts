/** What examples in doc comments take as given beside the rest: values of the code that stands around them. */
import { createServer } from 'node:http'
import pg from 'pg'
import { describe, it } from 'vitest'
import type { Logger, Signal } from '../../../src/entries/observe.ts'
import type { Op } from '../../../src/index.ts'
import type { Lock } from '../../../src/locks/index.ts'
import type { Outbox } from '../../../src/outbox/index.ts'
import type { RateLimit, Verdict } from '../../../src/rate-limits/index.ts'
import type { FaultProxy, StoreUnderTest } from '../../../src/testing/index.ts'
import type { WebhookEndpoint, Webhooks } from '../../../src/webhooks/index.ts'
import type { RunningWorkers } from '../../../src/workers/index.ts'

export { createServer, describe, it, pg }
export declare const error: Error
export declare const response: Response
export declare const request: { readonly headers: Record<string, string>; readonly url: string }
export declare const raw: Buffer
export declare const body: Buffer
export declare const secrets: readonly string[]
export declare const now: string
export declare const op: Op
export declare const item: string
export declare const stock: { has(item: string): Promise<boolean> }
export declare const cart: { readonly id: string; readonly items: readonly unknown[] }
export declare const old: string
export declare const fresh: string
export declare const lock: Lock
export declare const closeLedger: (tx: unknown) => Promise<void>
export declare const signal: Signal
export declare const pino: () => Logger
export declare const queue: { push(one: unknown): void }
export declare const page: (text: string) => void
export declare const message: { readonly id: string }
export declare const messageId: string
export declare const apply: (tx: unknown, message: unknown) => Promise<void>
export declare const emit: Outbox['emit']
export declare const stage: Outbox['stage']
export declare const topic: string
export declare const limit: RateLimit
export declare const verdict: Verdict
export declare const paymentMethod: string
export declare const hooks: Webhooks
export declare const endpoints: Webhooks['endpoints']
export declare const endpoint: WebhookEndpoint
export declare const inDoubt: { readonly key: string }
export declare const workers: RunningWorkers
export declare const proxy: FaultProxy
export declare const makeMyStore: () => Promise<StoreUnderTest['store']>
export declare const begin: StoreUnderTest['begin']
export declare const countTransfers: (key: string) => Promise<number>
export declare const checkout: import('../../../src/client/keys/index.ts').PendingAction
export declare const token: string
export declare const drizzle: (pool: pg.Pool) => { execute(text: string): Promise<unknown> }
export declare const Sequelize: new (options: { dialect: string; dialectModule: object }) => object
export declare const user: string
export declare const offerToTryAgain: () => void
export declare const showPending: (...args: unknown[]) => void
export declare const showThatItIsPaid: (...args: unknown[]) => void
export declare const showReceiptOf: (...args: unknown[]) => void
