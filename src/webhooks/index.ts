/** Webhooks, in and out: verified and signed, received once, delivered until they are taken. */

export type { Page } from '../core/page.ts'
export type {
  DeliveryId,
  WebhookAttempt,
  WebhookDelivery,
  WebhookEndpoint,
  WebhookStore,
} from '../store/webhooks.ts'
export { isPublicAddress } from './address.ts'
export type { Deliverer } from './deliverer.ts'
export type { CreateEndpoint, Endpoints, UpdateEndpoint } from './endpoints.ts'
export type { WebhookBody } from './fan-out.ts'
export type {
  Deliveries,
  ListDeliveries,
  ListMessages,
  Messages,
  WebhookMessage,
} from './history.ts'
export type { EndpointName } from './names.ts'
export type { WebhooksOptions } from './options.ts'
export { type ReceiveCall, type Received, type ReceivedWebhook, receiveWebhook } from './receive.ts'
export type { Replayed, ReplayMany, ReplayOne } from './replay.ts'
export type { WebhookHeaders, WebhookScheme } from './scheme.ts'
export { type SignOptions, signWebhook } from './sign.ts'
export type { ResolveName } from './target.ts'
export { type VerifiedWebhook, type VerifyOptions, verifyWebhook } from './verify.ts'
export { type Webhooks, webhooks } from './webhooks.ts'
