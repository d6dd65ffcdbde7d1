import { withoutPrefix } from '../event-id.ts'
import type { DeliveryList, MessageList } from '../webhooks.ts'
import { type Bound, bind, type Statement } from './flush.ts'
import { arrayLiteral } from './rows.ts'
import { afterValues } from './webhook-rows.ts'

/** Which statement a list of messages asks, and with what: one for all of them, and one for some types. */
export function askMessages(
  { listMessages, listMessagesOf }: Readonly<Record<'listMessages' | 'listMessagesOf', Statement>>,
  { account, types, from, to, after, limit }: MessageList,
): Bound {
  return bind(
    types === null ? listMessages : listMessagesOf,
    account,
    types === null ? null : arrayLiteral(types),
    from === null ? null : `${from}`,
    to === null ? null : `${to}`,
    ...afterValues(after),
    `${limit}`,
  )
}

type DeliveryLists = 'listDeliveries' | 'listDeliveriesTo' | 'listDeliveriesOf'

/** The same for deliveries: all of an account, those to an endpoint, or those of a message. */
export function askDeliveries(
  { listDeliveries, listDeliveriesTo, listDeliveriesOf }: Readonly<Record<DeliveryLists, Statement>>,
  { account, endpoint: to, message, after, limit }: DeliveryList,
): Bound {
  const endpoint = to === null ? null : withoutPrefix(to)
  const behind = after === null ? [null, null] : [withoutPrefix(after.message), withoutPrefix(after.endpoint)]
  const values = [account, ...behind, `${limit}`]
  if (message !== null) return bind(listDeliveriesOf, ...values, endpoint, withoutPrefix(message))
  return endpoint === null ? bind(listDeliveries, ...values) : bind(listDeliveriesTo, ...values, endpoint)
}
