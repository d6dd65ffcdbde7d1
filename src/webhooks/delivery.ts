import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { memberOf } from '../core/thrown.ts'
import { monotonicMs } from '../observe/stopwatch.ts'
import { failureOf } from '../record/failure.ts'
import type { CrashPoint } from '../store/contract.ts'
import type { DeliveryEnd, TakenDelivery } from '../store/webhooks.ts'
import type { WebhooksSettings } from './options.ts'
import { post } from './post.ts'
import { showSecret } from './secret.ts'
import { signWebhook } from './sign.ts'

/** The answer that an endpoint gives for ever. */
const GONE = 410

/** Makes one attempt and says what came of it. It throws nothing: every error is an attempt that failed. */
export async function attempt(
  delivery: TakenDelivery,
  settings: WebhooksSettings,
  crashPoint: CrashPoint,
): Promise<DeliveryEnd> {
  const { attempts, endpointState } = delivery
  const startMs = monotonicMs()
  const endWith = (rest: Pick<DeliveryEnd, 'end' | 'status' | 'failure'>, goneUrl: string | null = null) => ({
    delivery,
    durationMs: monotonicMs() - startMs,
    goneUrl,
    ...rest,
  })
  if (endpointState !== 'enabled') {
    const failure = { code: `endpoint_${endpointState}`, message: `The endpoint is ${endpointState}.` }
    return endWith({ end: 'failed', status: null, failure })
  }
  // A delivery that was taken so often without a result has crashed its workers.
  if (attempts > settings.retryAfterMs.length + 1) {
    const failure = {
      code: 'begun_too_often',
      message: 'It was begun too often, and its end was never told.',
    }
    return endWith({ end: 'failed', status: null, failure })
  }
  try {
    crashPoint('webhooks.post.before')
    const status = await send(delivery, settings)
    crashPoint('webhooks.post.after')
    if (status >= 200 && status < 300) return endWith({ end: 'delivered', status, failure: null })
    const failure = answered(status)
    if (status === GONE) return endWith({ end: 'failed', status, failure }, delivery.url)
    return endWith({ end: nextOf(attempts, settings), status, failure })
  } catch (error) {
    if (memberOf(error, 'code') === 'webhook_url_refused') await settle(startMs)
    return endWith({ end: nextOf(attempts, settings), status: null, failure: failureOf(error) })
  }
}

/** How long our servers of names took would tell what they know: a name that they have is refused sooner than one that they ask about. */
async function settle(startMs: number): Promise<void> {
  const leftMs = startMs + LIMITS.webhookRefusedAfterMs - monotonicMs()
  if (leftMs > 0) await new Promise((resolve) => setTimeout(resolve, leftMs))
}

async function send(delivery: TakenDelivery, settings: WebhooksSettings): Promise<number> {
  const { message: id, url, takenAt } = delivery
  const body = Buffer.from(delivery.body)
  const secrets = delivery.secrets.map(({ bytes }) => showSecret(bytes))
  // It was removed, or rotated out, in this very moment.
  if (secrets.length === 0) throw new OnlyonceError('webhook_secret_invalid', { detail: 'There is none.' })
  const signed = signWebhook({ scheme: 'standard', id, body, secrets, timestamp: takenAt })
  const headers = { 'content-type': 'application/json', 'user-agent': 'onlyonce-webhooks', ...signed }
  return await post({ url, headers, body, timeoutMs: settings.timeoutMs }, settings)
}

function answered(status: number): { readonly code: string; readonly message: string } {
  const redirect = status >= 300 && status < 400
  return {
    code: `status_${status}`,
    message: `The answer was ${status}.${redirect ? ' Redirects are not followed.' : ''}`,
  }
}

/** When it is tried again; later than planned by a random share, so that those who failed together do not come back together. */
function nextOf(attempts: number, { retryAfterMs }: WebhooksSettings): DeliveryEnd['end'] {
  const pauseMs = retryAfterMs[attempts - 1]
  if (pauseMs === undefined) return 'failed'
  return { waitMs: Math.round(pauseMs * (1 + LIMITS.webhookJitter * Math.random())) }
}
