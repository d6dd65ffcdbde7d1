/** A sandbox processor that speaks Stripe's wire protocol, with faults on demand. README.md tells what it knows. */

export { FOLDER_TAKEN, type GatewayOptions } from './options.ts'
export { type GatewayProcess, NotStarted, startGateway } from './process.ts'
export { readToken, TOKEN_FILE } from './token.ts'
export type { WebhookTarget } from './webhooks.ts'
export {
  FAULTS,
  type FaultName,
  type FaultRule,
  type GatewayState,
  type JournalEntry,
  type MovementKind,
  type RequestOutcome,
  type SeenRequest,
  TARGETS,
  type Target,
} from './wire.ts'
