import { LIMITS } from '../../core/limits.ts'
import { memberOf } from '../../core/thrown.ts'
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
import { type Bound, bind, type Statement, statement } from './flush.ts'
import { BY_INDEX } from './outbox-statements.ts'
import { arrayLiteral } from './rows.ts'
import * as deliveries from './sql/webhook-deliveries.ts'
import * as endpoints from './sql/webhooks.ts'
import { askDeliveries, askMessages } from './webhook-lists.ts'
import {
  afterValues,
  idValues,
  readDelivery,
  readDeliveryAttempt,
  readEndpoint,
  readMessage,
  readTaken,
  secretValues,
} from './webhook-rows.ts'

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
    countMax: number,
  ): Promise<WebhookEndpoint | 'too_many' | 'url_taken'> {
    const { account, id, url, types, description } = draft
    const { lockEndpoints, insertEndpoint, findUrl } = this.#statements
    const values = [account, withoutPrefix(id), url, types === null ? null : arrayLiteral(types), description]
    const { rows } = await this.#connections.run(
      bind(lockEndpoints, account),
      bind(insertEndpoint, ...values, ...secretValues(secret), `${countMax}`),
      bind(findUrl, account, url),
    )
    const row = rows[1]![0]
    if (row !== undefined) return readEndpoint(row)
    return rows[2]!.length > 0 ? 'url_taken' : 'too_many'
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
  ): Promise<WebhookEndpoint | 'url_taken' | null> {
    const change = (value: string | null | undefined) => [`${value !== undefined}`, value ?? null]
    const changing = this.#connections.runBounded(
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
    try {
      const row = (await changing).rows.at(-1)![0]
      return row === undefined ? null : readEndpoint(row)
    } catch (error) {
      if (memberOf(error, 'constraint') === 'webhook_endpoints_url') return 'url_taken'
      throw error
    }
  }

  async removeEndpoint(account: string, id: string): Promise<boolean> {
    const { rows } = await this.#connections.runBounded(
      bind(this.#statements.removeEndpoint, account, withoutPrefix(id)),
    )
    return rows.at(-1)!.length > 0
  }

  async rotateSecret(account: string, id: string, secret: Sealed, keepMs: number): Promise<boolean> {
    const { lockEndpoint, retireSecrets, insertSecret } = this.#statements
    const of = [account, withoutPrefix(id)] as const
    const { rows } = await this.#connections.run(
      bind(lockEndpoint, ...of),
      bind(retireSecrets, ...of, `${keepMs}`, `${LIMITS.webhookSecretsMax - 1}`),
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
        arrayLiteral(messages.map(({ createdAt }) => `${createdAt}`)),
      ),
      bind(insertDeliveries, ...of),
    )
  }

  async take(request: TakeDeliveries): Promise<readonly TakenDelivery[]> {
    const { countMax, leaseMs, perEndpointMax, busy } = request
    const { rows } = await this.#connections.run(
      BY_INDEX,
      bind(
        this.#statements.takeDeliveries,
        `${countMax}`,
        `${leaseMs}`,
        `${perEndpointMax}`,
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
    durationMs,
    goneUrl,
  }: DeliveryEnd): Promise<{ ours: boolean; disabled: boolean }> {
    const { endDelivery, disableGone } = this.#statements
    const gone = [delivery.account, withoutPrefix(delivery.endpoint), goneUrl, `${delivery.takenAt}`]
    const { rows } = await this.#connections.run(
      bind(
        endDelivery,
        ...idValues(delivery),
        `${delivery.fence}`,
        typeof end === 'object' ? 'pending' : end,
        typeof end === 'object' ? `${end.waitMs}` : null,
        status === null ? null : `${status}`,
        failure?.code ?? null,
        failure?.message ?? null,
        `${Math.round(durationMs)}`,
        `${delivery.attempts}`,
      ),
      ...(goneUrl === null ? [] : [bind(disableGone, ...gone)]),
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
  ): Promise<readonly { createdAt: number; id: string; replayed: boolean }[]> {
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
    return rows[0]!.map(([createdAt, id, wanted]) => ({
      createdAt: Number(createdAt),
      id: withPrefix('evt', id!),
      replayed: wanted === 't',
    }))
  }

  async listMessages(list: MessageList): Promise<readonly StoredMessage[]> {
    return (await this.#read(askMessages(this.#statements, list))).map(readMessage)
  }

  /** A list that an account asks for ends on the server too: a connection that is only given up here goes on reading there. */
  async #read(list: Bound) {
    // Before the connection is given up, so that the error is the server's.
    const maxMs = Math.ceil(this.#connections.settings.statementMaxMs / 2)
    const { rows } = await this.#connections.run(bind(this.#statements.boundRead, `${maxMs}`), list)
    return rows[1]!
  }

  async getMessage(account: string, id: string): Promise<StoredMessage | null> {
    const { rows } = await this.#connections.run(
      bind(this.#statements.getMessage, account, withoutPrefix(id)),
    )
    const row = rows[0]![0]
    return row === undefined ? null : readMessage(row)
  }

  async listDeliveries(list: DeliveryList): Promise<readonly WebhookDelivery[]> {
    return (await this.#read(askDeliveries(this.#statements, list))).map(readDelivery)
  }

  async listAttempts(delivery: DeliveryId): Promise<readonly WebhookAttempt[]> {
    const { rows } = await this.#connections.run(
      bind(this.#statements.listAttempts, ...idValues(delivery), `${LIMITS.historyMax}`),
    )
    return rows[0]!.map(readDeliveryAttempt).reverse()
  }

  async receive({ account, source, messageId }: Message, job: JobDraft): Promise<string | null> {
    const { rows } = await this.#connections.runBounded(
      bind(
        this.#statements.receiveMessage,
        account,
        source,
        messageId,
        withoutPrefix(job.id),
        job.job,
        job.payload,
      ),
    )
    const row = rows.at(-1)![0]
    return row === undefined ? null : withPrefix('job', row[0]!)
  }

  async clean(retentionMs: number): Promise<boolean> {
    const countMax = LIMITS.webhookCleanMax
    const values = [`${retentionMs}`, `${countMax}`] as const
    const { rows } = await this.#connections.run(
      BY_INDEX,
      bind(this.#statements.deleteMessages, ...values),
      bind(this.#statements.deleteEndpoints, ...values),
      bind(this.#statements.deleteSecrets, `${countMax}`),
    )
    return rows.slice(1).some((counted) => Number(counted[0]![0]) >= countMax)
  }
}
