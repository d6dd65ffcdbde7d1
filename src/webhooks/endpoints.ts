import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { type OptionNames, refuseUnknown } from '../core/options.ts'
import type { Page } from '../core/page.ts'
import { isWellFormed } from '../core/parts.ts'
import { newId } from '../store/event-id.ts'
import type { EndpointChanges, WebhookEndpoint, WebhookStore } from '../store/webhooks.ts'
import { checkAccount, type EndpointName, isEndpointId } from './names.ts'
import type { WebhooksSettings } from './options.ts'
import { newSecret, showSecret } from './secret.ts'
import { checkUrl } from './target.ts'

export interface CreateEndpoint {
  readonly account: string
  readonly url: string
  /** The types of events that it wants; `payment.*` is all that begin so. By default all of them. */
  readonly types?: readonly string[] | null | undefined
  readonly description?: string | null | undefined
}

export interface UpdateEndpoint extends EndpointName {
  readonly url?: string | undefined
  readonly types?: readonly string[] | null | undefined
  readonly description?: string | null | undefined
}

export interface Endpoints {
  /**
   * The secret is shown here, and never again. Throws `webhook_url_refused` where webhooks are not sent to, and
   * `webhook_url_taken` where the account has an endpoint with this URL.
   *
   * @example
   * const { endpoint, secret } = await endpoints.create({ account, url: 'https://shop.example/hooks', types: ['payment.*'] })
   */
  create(call: CreateEndpoint): Promise<{ readonly endpoint: WebhookEndpoint; readonly secret: string }>
  /** All of an account; there is a bounded number of them. */
  /** All of the account, as one page. */
  list(call: { readonly account: string }): Promise<Page<WebhookEndpoint>>
  /** Throws `webhook_endpoint_unknown`, as all that follow. */
  get(name: EndpointName): Promise<WebhookEndpoint>
  /** Changes what is named, and leaves the rest. */
  update(call: UpdateEndpoint): Promise<WebhookEndpoint>
  /**
   * Makes a new secret, which is shown here, and never again. The old one goes on signing beside it for `keepMs`; without it, not at all.
   */
  rotateSecret(
    call: EndpointName & { readonly keepMs?: number | undefined },
  ): Promise<{ readonly secret: string }>
  enable(name: EndpointName): Promise<WebhookEndpoint>
  /** What is due to it meanwhile fails, and can be replayed later. */
  disable(name: EndpointName): Promise<WebhookEndpoint>
  remove(name: EndpointName): Promise<void>
}

const DESCRIBED = { account: true, url: true, types: true, description: true } as const
const CREATE: OptionNames<CreateEndpoint> = DESCRIBED
const UPDATE: OptionNames<UpdateEndpoint> = { ...DESCRIBED, id: true }

export function endpointsOf(
  store: WebhookStore,
  settings: WebhooksSettings,
  ready: () => Promise<void>,
): Endpoints {
  const change = async ({ account, id }: EndpointName, changes: EndpointChanges) => {
    checkAccount(account)
    await ready()
    const changed = isEndpointId(id) ? await store.changeEndpoint(account, id, changes) : null
    if (changed === 'url_taken') throw new OnlyonceError('webhook_url_taken')
    return known(changed)
  }
  return {
    async create(call) {
      refuseUnknown('endpoints.create()', call, CREATE)
      const { account, url, types = null, description = null } = call
      const draft = {
        account: checkAccount(account),
        id: newId('we'),
        url: checkUrl(url, settings).href,
        types: checkTypes(types),
        description: checkDescription(description),
      }
      await ready()
      const secret = newSecret()
      const stored = { bytes: secret, sealedBy: null }
      const endpoint = await store.createEndpoint(draft, stored, LIMITS.webhookEndpointsMax)
      if (endpoint === 'too_many') throw new OnlyonceError('webhook_endpoints_too_many')
      if (endpoint === 'url_taken') throw new OnlyonceError('webhook_url_taken')
      return { endpoint, secret: showSecret(secret) }
    },
    async list(call) {
      refuseUnknown('endpoints.list()', call, { account: true })
      const { account } = call
      checkAccount(account)
      await ready()
      // An account has at most `webhookEndpointsMax`: they are one page.
      return { items: await store.listEndpoints(account), cursor: null }
    },
    async get({ account, id }) {
      checkAccount(account)
      await ready()
      return known(isEndpointId(id) ? await store.getEndpoint(account, id) : null)
    },
    async update(call) {
      refuseUnknown('endpoints.update()', call, UPDATE)
      const { url, types, description, ...name } = call
      return await change(name, {
        ...(url !== undefined && { url: checkUrl(url, settings).href }),
        ...(types !== undefined && { types: checkTypes(types) }),
        ...(description !== undefined && { description: checkDescription(description) }),
      })
    },
    async rotateSecret(call) {
      refuseUnknown('endpoints.rotateSecret()', call, { account: true, id: true, keepMs: true })
      const { account, id, keepMs = 0 } = call
      checkAccount(account)
      if (!Number.isSafeInteger(keepMs) || keepMs < 0 || keepMs > LIMITS.webhookSecretKeptMaxMs) {
        refuse(`keepMs must be from 0 to ${LIMITS.webhookSecretKeptMaxMs} milliseconds.`)
      }
      await ready()
      const secret = newSecret()
      const stored = { bytes: secret, sealedBy: null }
      const done = isEndpointId(id) && (await store.rotateSecret(account, id, stored, keepMs))
      if (!done) throw new OnlyonceError('webhook_endpoint_unknown')
      return { secret: showSecret(secret) }
    },
    enable: (name) => change(name, { state: 'enabled' }),
    disable: (name) => change(name, { state: 'disabled' }),
    async remove({ account, id }) {
      checkAccount(account)
      await ready()
      const done = isEndpointId(id) && (await store.removeEndpoint(account, id))
      if (!done) throw new OnlyonceError('webhook_endpoint_unknown')
    },
  }
}

function known(endpoint: WebhookEndpoint | null): WebhookEndpoint {
  if (endpoint === null) throw new OnlyonceError('webhook_endpoint_unknown')
  return endpoint
}

/** A star stands at the end, behind a dot, or it would promise more than is meant. */
export function checkTypes(types: unknown): readonly string[] | null {
  if (types === null) return null
  if (!Array.isArray(types) || types.length === 0 || types.length > LIMITS.webhookTypesMax) {
    refuse(`types must be a list of 1 to ${LIMITS.webhookTypesMax} of them; leave it out for all.`)
  }
  const wrong = types.find((type) => !isText(type, LIMITS.nameLengthMax) || /\*(?!$)|(?<!\.)\*$/.test(type))
  if (wrong !== undefined) refuse('A type is its whole name, or its beginning and .* behind it.')
  return [...new Set<string>(types)]
}

function checkDescription(description: unknown): string | null {
  if (description === null || isText(description, LIMITS.whyLengthMax)) return description as string | null
  return refuse(`description must be text of at most ${LIMITS.whyLengthMax} characters.`)
}

function isText(text: unknown, lengthMax: number): boolean {
  if (typeof text !== 'string' || text.length === 0 || text.length > lengthMax) return false
  return isWellFormed(text) && !text.includes('\0')
}

function refuse(detail: string): never {
  throw new OnlyonceError('webhook_endpoint_invalid', { detail })
}
