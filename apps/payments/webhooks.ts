import { type Webhooks, webhooks } from 'onlyonce/webhooks'
import type { Service } from './service.ts'

/** Under this name the relay knows the endpoints of all accounts. It is kept in the database. */
export const WEBHOOKS = 'webhooks'

/** Tells accounts what happened to what is theirs. It holds nothing: whoever needs it opens it. */
export function openWebhooks({ once, config }: Pick<Service, 'once' | 'config'>): Webhooks {
  return webhooks(once, { allowPrivate: config.webhooksAllowPrivate })
}
