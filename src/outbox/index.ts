/** What leaves the database, and how it is received: events, jobs, the relay that takes them out, the inbox. */

export type { Page } from '../core/page.ts'
export type { EmitOptions, StageOptions } from '../operation/operation.ts'
export type { Lag, Message, OutboxEvent, OutboxStore, Parked } from '../store/outbox.ts'
export { type HttpPublisherOptions, httpPublisher } from './http-publisher.ts'
export { type Inbox, type InboxResult, inbox } from './inbox.ts'
export type { Destination, Job, JobContext, RelayOptions, RunJob } from './options.ts'
export { type EmitCall, type Outbox, outbox, type StageCall, type Staged } from './outbox.ts'
export type { FailedEvent, Publish, PublishContext, Publisher, PublishResult } from './publisher.ts'
export { type Relay, relay } from './relay.ts'
