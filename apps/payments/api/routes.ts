import { balanceRoutes } from './balances.ts'
import { eventRoutes } from './events.ts'
import { gatewayWebhookRoutes } from './gateway-webhooks.ts'
import { healthRoutes } from './health.ts'
import { idempotencyKeyRoutes } from './idempotency-keys.ts'
import { opsRoutes } from './ops.ts'
import { opsBookRoutes } from './ops-books.ts'
import { opsRecordRoutes } from './ops-records.ts'
import { paymentRoutes } from './payments.ts'
import { transferRoutes } from './transfers.ts'
import type { Routes } from './type.ts'
import { webhookDeliveryRoutes } from './webhook-deliveries.ts'
import { webhookEndpointRoutes } from './webhook-endpoints.ts'

/** All under /v1: an API key is asked for before anything else, and an Idempotency-Key for every write. */
export const V1_ROUTES: readonly Routes[] = [
  balanceRoutes,
  idempotencyKeyRoutes,
  paymentRoutes,
  transferRoutes,
  webhookEndpointRoutes,
  webhookDeliveryRoutes,
  eventRoutes,
]

/** Those with a door of their own. */
export const OTHER_ROUTES: readonly Routes[] = [
  healthRoutes,
  opsRoutes,
  opsRecordRoutes,
  opsBookRoutes,
  gatewayWebhookRoutes,
]
