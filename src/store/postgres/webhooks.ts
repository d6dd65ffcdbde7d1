import { randomUUID } from 'node:crypto'
import { LIMITS } from '../../limits.ts'
import type { Sealed } from '../../seal/index.ts'
import { withoutPrefix, withPrefix } from '../event-id.ts'
import type { JobDraft, Message } from '../outbox.ts'
import type {
  DeliveryEnd,
  DeliveryId,
  DeliveryList,
  EndpointChanges,
  EndpointDraft,
  MessageDraft,
  MessageList,
  ReplayRange,
  StoredMessage,
  TakeDeliveries,
  TakenDelivery,
  WebhookAttempt,
  WebhookDelivery,
  WebhookEndpoint,
  WebhookStore,
} from '../webhooks.ts'
import type { Connections } from './connections.ts'
import { bind, type Statement, statement } from './flush.ts'
import { BY_INDEX } from './outbox-statements.ts'
import { arrayLiteral } from './rows.ts'
import * as deliveries from './sql/webhook-deliveries.ts'
import * as endpoints from './sql/webhooks.ts'
import { readDelivery, readDeliveryAttempt, readEndpoint, readMessage, readTaken } from './webhook-rows.ts'

const TEXTS = { ...endpoints, ...deliveries }
type WebhookStatements = Readonly<Record<keyof typeof TEXTS, Statement>>

/** Webhooks in PostgreSQL. */
export class PostgresWebhooks implements WebhookStore {
  readonly #connections: Connections
  readonly #statements: WebhookStatements

  constructor(connections: Connections) {
    this.#connections = connections
    const { schema } = connections.settings
    const made = Object.entries(TEXTS).map(([name, text]) => [name, statement(text(schema))])
    this.#statements = Object.fromEntries(made) as WebhookStatements
  }

  async createEndpoint(
    draft: EndpointDraft,
    secret: Sealed,
    count_max: number,
  ): Promise<WebhookEndpoint | null> {
    const { account, id, url, types, description } = draft
    const values = [account, withoutPrefix(id), url, types === null ? null : arrayLiteral(types), description]
    const { rows } = await this.#connections.run(
      bind(this.#statements.insertEndpoint, ...values, ...secretValues(secret), `${count_max}`),
    )
    const row = rows[0]![0]
    return row === undefined ? null : readEndpoint(row)
  }

  async listEndpoints(account: string): Promise<readonly WebhookEndpoint[]> {
    const { rows } = await this.#connections.run(bind(this.#statements.listEndpoints, account))
    return rows[0]!.map(readEndpoint)
  }

  async getEndpoint(account: string, id: string): Promise<WebhookEndpoint | null> {
    const { rows } = await this.#connections.run(
      bind(this.#statements.getEndpoint, account, withoutPrefix(id)),
    )
    const row = rows[0]![0]
    return row === undefined ? null : readEndpoint(row)
  }

  async changeEndpoint(
    account: string,
    id: string,
    { url, types, description, state }: EndpointChanges,
  ): Promise<WebhookEndpoint | null> {
    const change = (value: string | null | undefined) => [`${value !== undefined}`, value ?? null]
    const { rows } = await this.#connections.runBounded(
      bind(
        this.#statements.changeEndpoint,
        account,
        withoutPrefix(id),
        ...change(url),
        ...change(types == null ? types : arrayLiteral(types)),
        ...change(description),
        ...change(state),
      ),
    )
    const row = rows.at(-1)![0]
    return row === undefined ? null : readEndpoint(row)
  }

  async removeEndpoint(account: string, id: string): Promise<boolean> {
    const { rows } = await this.#connections.runBounded(
      bind(this.#statements.removeEndpoint, account, withoutPrefix(id)),
    )
    return rows.at(-1)!.length > 0
  }

  async rotateSecret(account: string, id: string, secret: Sealed, keep_ms: number): Promise<boolean> {
    const { lockEndpoint, retireSecrets, insertSecret } = this.#statements
    const of = [account, withoutPrefix(id)] as const
    const { rows } = await this.#connections.run(
      bind(lockEndpoint, ...of),
      bind(retireSecrets, ...of, `${keep_ms}`, `${LIMITS.webhook_secrets_max - 1}`),
      bind(insertSecret, ...of, ...secretValues(secret)),
    )
    return rows[2]!.length > 0
  }

  async fanOut(messages: readonly MessageDraft[]): Promise<void> {
    if (messages.length === 0) return
    const { insertMessages, insertDeliveries } = this.#statements
    const of = [
      arrayLiteral(messages.map(({ account }) => account)),
      arrayLiteral(messages.map(({ id }) => withoutPrefix(id))),
      arrayLiteral(messages.map(({ type }) => type)),
    ] as const
    await this.#connections.run(
      BY_INDEX,
      bind(
        insertMessages,
        ...of,
        arrayLiteral(messages.map(({ body }) => body)),
        arrayLiteral(messages.map(({ created_at }) => `${created_at}`)),
      ),
      bind(insertDeliveries, ...of),
    )
  }

  async take(request: TakeDeliveries): Promise<readonly TakenDelivery[]> {
    const { count_max, lease_ms, per_endpoint_max, busy } = request
    const { rows } = await this.#connections.run(
      BY_INDEX,
      bind(
        this.#statements.takeDeliveries,
        `${count_max}`,
        `${lease_ms}`,
        `${per_endpoint_max}`,
        arrayLiteral(busy.map(({ account }) => account)),
        arrayLiteral(busy.map(({ endpoint }) => withoutPrefix(endpoint))),
        arrayLiteral(busy.map(({ count }) => `${count}`)),
      ),
    )
    return rows[1]!.map(readTaken)
  }

  async end({
    delivery,
    end,
    status,
    failure,
    duration_ms,
    gone_url,
  }: DeliveryEnd): Promise<{ ours: boolean; disabled: boolean }> {
    const { endDelivery, disableGone } = this.#statements
    const gone = [delivery.account, withoutPrefix(delivery.endpoint), gone_url, `${delivery.taken_at}`]
    const { rows } = await this.#connections.run(
      bind(
        endDelivery,
        ...idValues(delivery),
        `${delivery.fence}`,
        typeof end === 'object' ? 'pending' : end,
        typeof end === 'object' ? `${end.wait_ms}` : null,
        status === null ? null : `${status}`,
        failure?.code ?? null,
        failure?.message ?? null,
        `${Math.round(duration_ms)}`,
        `${delivery.attempts}`,
      ),
      ...(gone_url === null ? [] : [bind(disableGone, ...gone)]),
    )
    return { ours: rows[0]!.length > 0, disabled: (rows[1]?.length ?? 0) > 0 }
  }

  async replay(delivery: DeliveryId): Promise<boolean> {
    const { rows } = await this.#connections.runBounded(
      bind(this.#statements.replayMessage, ...idValues(delivery)),
    )
    return rows.at(-1)!.length > 0
  }

  async replayRange(
    range: ReplayRange,
  ): Promise<readonly { created_at: number; id: string; replayed: boolean }[]> {
    const { account, endpoint, from, to, after, limit } = range
    const { rows } = await this.#connections.run(
      bind(
        this.#statements.replayRange,
        account,
        withoutPrefix(endpoint),
        `${from}`,
        `${to}`,
        ...afterValues(after),
        `${limit}`,
      ),
    )
    return rows[0]!.map(([created_at, id, wanted]) => ({
      created_at: Number(created_at),
      id: withPrefix('evt', id!),
      replayed: wanted === 't',
    }))
  }

  async listMessages({
    account,
    types,
    from,
    to,
    after,
    limit,
  }: MessageList): Promise<readonly StoredMessage[]> {
    const { rows } = await this.#connections.run(
      bind(
        this.#statements.listMessages,
        account,
        types === null ? null : arrayLiteral(types),
        from === null ? null : `${from}`,
        to === null ? null : `${to}`,
        ...afterValues(after),
        `${limit}`,
      ),
    )
    return rows[0]!.map(readMessage)
  }

  async getMessage(account: string, id: string): Promise<StoredMessage | null> {
    const { rows } = await this.#connections.run(
      bind(this.#statements.getMessage, account, withoutPrefix(id)),
    )
    const row = rows[0]![0]
    return row === undefined ? null : readMessage(row)
  }

  async listDeliveries(list: DeliveryList): Promise<readonly WebhookDelivery[]> {
    const { listDeliveries, listDeliveriesTo, listDeliveriesOf } = this.#statements
    const { account, after, limit } = list
    const endpoint = list.endpoint === null ? null : withoutPrefix(list.endpoint)
    const behind =
      after === null ? [null, null] : [withoutPrefix(after.message), withoutPrefix(after.endpoint)]
    const values = [account, ...behind, `${limit}`]
    const asked =
      list.message !== null
        ? bind(listDeliveriesOf, ...values, endpoint, withoutPrefix(list.message))
        : endpoint !== null
          ? bind(listDeliveriesTo, ...values, endpoint)
          : bind(listDeliveries, ...values)
    return (await this.#connections.run(asked)).rows[0]!.map(readDelivery)
  }

  async listAttempts(delivery: DeliveryId): Promise<readonly WebhookAttempt[]> {
    const { rows } = await this.#connections.run(
      bind(this.#statements.listAttempts, ...idValues(delivery), `${LIMITS.history_max}`),
    )
    return rows[0]!.map(readDeliveryAttempt).reverse()
  }

  async receive({ account, source, message_id }: Message, job: JobDraft): Promise<string | null> {
    const { rows } = await this.#connections.runBounded(
      bind(
        this.#statements.receiveMessage,
        account,
        source,
        message_id,
        withoutPrefix(job.id),
        job.job,
        job.payload,
      ),
    )
    const row = rows.at(-1)![0]
    return row === undefined ? null : withPrefix('job', row[0]!)
  }

  async clean(retention_ms: number): Promise<boolean> {
    const count_max = LIMITS.webhook_clean_max
    const values = [`${retention_ms}`, `${count_max}`] as const
    const { rows } = await this.#connections.run(
      BY_INDEX,
      bind(this.#statements.deleteMessages, ...values),
      bind(this.#statements.deleteEndpoints, ...values),
      bind(this.#statements.deleteSecrets, `${count_max}`),
    )
    return rows.slice(1).some((counted) => Number(counted[0]![0]) >= count_max)
  }
}

function secretValues({ bytes, sealed_by }: Sealed): [string, Buffer, string | null] {
  return [randomUUID(), bytes, sealed_by]
}

function idValues({ account, endpoint, message }: DeliveryId): [string, string, string] {
  return [account, withoutPrefix(endpoint), withoutPrefix(message)]
}

function afterValues(after: { created_at: number; id: string } | null): [string | null, string | null] {
  return after === null ? [null, null] : [`${after.created_at}`, withoutPrefix(after.id)]
}
