import { join } from 'node:path'
import type { Config, Timing } from './config.ts'
import { openFolder } from './data-folder.ts'
import type { Gateway } from './gateway/index.ts'
import { stripeGateway } from './gateway/stripe.ts'
import { keptSecret } from './kept-secret.ts'
import type { Gateways } from './payments/index.ts'
import { shareGateway } from './sandbox.ts'

export interface OpenGateways {
  readonly gateways: Gateways
  /** What they sign their webhooks with. */
  readonly webhookSecrets: readonly string[]
  close(): Promise<void>
}

/** Its search is a second behind. */
const SANDBOX_SETTLE_MS = 5_000
/** The one that the sandbox takes where it is not told another. */
const SANDBOX_KEY = 'sk_test_sandbox'

/** The processors that the configuration names; where it names none, a sandbox for test mode, which is started. */
export async function openGateways(config: Config): Promise<OpenGateways> {
  const { stripe, gatewayUrl, folder, timing, webhookSecrets } = config
  const close = async () => {}
  if (stripe !== null) {
    const { mode, secretKey } = stripe
    const gateway = stripeGateway({ secretKey, mode, ...timesOf(timing) })
    return { gateways: { [mode]: gateway }, webhookSecrets, close }
  }
  if (gatewayUrl !== null) {
    return { gateways: { test: sandboxAt(gatewayUrl, timing) }, webhookSecrets, close }
  }
  // Its journal stays: what it was told before a restart, it has still done afterwards.
  await openFolder(folder)
  const webhook = await webhookOf(config)
  const sandbox = await shareGateway({
    folder: join(folder, 'gateway'),
    ...(webhook !== null && { webhook }),
  })
  return {
    gateways: { test: sandboxAt(sandbox.url, timing) },
    webhookSecrets: webhook === null ? [] : [webhook.secret],
    close: () => sandbox.stop(),
  }
}

/** Where the sandbox that we start tells what it has done: here, unless nobody knows the port yet. */
async function webhookOf({ host, port, folder }: Config) {
  if (port === 0) return null
  const secret = `whsec_${await keptSecret(folder, 'gateway-webhook-secret')}`
  const address = host.includes(':') ? `[${host}]` : host === '0.0.0.0' ? '127.0.0.1' : host
  return { url: `http://${address}:${port}/webhooks/stripe`, secret }
}

function timesOf({ gatewayTimeoutMs, gatewayVisibleWithinMs }: Timing) {
  return {
    timeoutMs: gatewayTimeoutMs,
    ...(gatewayVisibleWithinMs !== null && { visibleWithinMs: gatewayVisibleWithinMs }),
  }
}

/** A processor that speaks Stripe's protocol at this address. */
export function sandboxAt(url: string, timing: Timing): Gateway {
  const { protocol, hostname, port } = new URL(url)
  return stripeGateway({
    secretKey: SANDBOX_KEY,
    mode: 'test',
    host: hostname.replace(/^\[|\]$/g, ''),
    ...(port !== '' && { port: Number(port) }),
    protocol: protocol === 'https:' ? 'https' : 'http',
    visibleWithinMs: SANDBOX_SETTLE_MS,
    ...timesOf(timing),
  })
}
