import type { Seal, Sealed, SealedPlace } from '../seal/index.ts'
import type { WebhookStore } from './webhooks.ts'

/** Where the secret of an endpoint is sealed. */
export function webhookSecretPlace(account: string, endpoint: string): SealedPlace {
  return { kind: 'webhook_secret', id: { account, operation: 'webhooks', key: endpoint }, beside: [] }
}

/** Webhooks with the secrets of endpoints sealed on their way in, and opened when they are read. Messages are for others to read. */
export function sealedWebhooks(inner: WebhookStore, seal: Seal): WebhookStore {
  const closing = (account: string, endpoint: string, { bytes }: Sealed): Sealed =>
    seal.seal(webhookSecretPlace(account, endpoint), bytes)
  return {
    createEndpoint: (draft, secret, countMax) =>
      inner.createEndpoint(draft, closing(draft.account, draft.id, secret), countMax),
    listEndpoints: (account) => inner.listEndpoints(account),
    getEndpoint: (account, id) => inner.getEndpoint(account, id),
    changeEndpoint: (account, id, changes) => inner.changeEndpoint(account, id, changes),
    removeEndpoint: (account, id) => inner.removeEndpoint(account, id),
    rotateSecret: (account, id, secret, keepMs) =>
      inner.rotateSecret(account, id, closing(account, id, secret), keepMs),
    fanOut: (messages) => inner.fanOut(messages),
    take: async (request) => {
      const taken = await inner.take(request)
      return taken.map(({ secrets, ...delivery }) => ({
        ...delivery,
        get secrets() {
          const place = webhookSecretPlace(delivery.account, delivery.endpoint)
          return secrets.map((secret) => ({ bytes: seal.open(place, secret), sealedBy: null }))
        },
      }))
    },
    end: (end) => inner.end(end),
    replay: (delivery) => inner.replay(delivery),
    replayRange: (range) => inner.replayRange(range),
    listMessages: (list) => inner.listMessages(list),
    getMessage: (account, id) => inner.getMessage(account, id),
    listDeliveries: (list) => inner.listDeliveries(list),
    listAttempts: (delivery) => inner.listAttempts(delivery),
    receive: (message, job) => inner.receive(message, job),
    clean: (retentionMs) => inner.clean(retentionMs),
  }
}
