/** A sandbox processor that speaks Stripe's wire protocol, with faults on demand. README.md tells what it knows. */
export type { GatewayOptions } from './options.ts'
export { type GatewayProcess, startGateway } from './process.ts'
export type { WebhookTarget } from './webhooks.ts'
export type {
  FaultName,
  FaultRule,
  GatewayState,
  JournalEntry,
  MovementKind,
  RequestOutcome,
  SeenRequest,
  Target,
} from './wire.ts'
