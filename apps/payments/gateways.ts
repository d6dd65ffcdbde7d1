import { join } from 'node:path'
import type { Config, Timing } from './config.ts'
import type { Gateway } from './gateway/index.ts'
import { stripeGateway } from './gateway/stripe.ts'
import { startGateway } from './sandbox.ts'
import type { Gateways } from './service.ts'

export interface OpenGateways {
  readonly gateways: Gateways
  close(): Promise<void>
}

/** Its search is a second behind. */
const SANDBOX_SETTLE_MS = 5_000
/** The one that the sandbox takes where it is not told another. */
const SANDBOX_KEY = 'sk_test_sandbox'

/** The processors that the configuration names; where it names none, a sandbox for test mode, which is started. */
export async function openGateways({ stripe, gateway_url, folder, timing }: Config): Promise<OpenGateways> {
  const close = async () => {}
  if (stripe !== null) {
    const { mode, secret_key } = stripe
    return { gateways: { [mode]: stripeGateway({ secret_key, mode, ...timesOf(timing) }) }, close }
  }
  if (gateway_url !== null) return { gateways: { test: sandboxAt(gateway_url, timing) }, close }
  // Its journal stays: what it was told before a restart, it has still done afterwards.
  const sandbox = await startGateway({ folder: join(folder, 'gateway') })
  return { gateways: { test: sandboxAt(sandbox.url, timing) }, close: () => sandbox.stop() }
}

function timesOf({ gateway_timeout_ms, gateway_settle_ms }: Timing) {
  return {
    timeout_ms: gateway_timeout_ms,
    ...(gateway_settle_ms !== null && { settle_ms: gateway_settle_ms }),
  }
}

/** A processor that speaks Stripe's protocol at this address. */
export function sandboxAt(url: string, timing: Timing): Gateway {
  const { protocol, hostname, port } = new URL(url)
  return stripeGateway({
    secret_key: SANDBOX_KEY,
    mode: 'test',
    host: hostname.replace(/^\[|\]$/g, ''),
    ...(port !== '' && { port: Number(port) }),
    protocol: protocol === 'https:' ? 'https' : 'http',
    settle_ms: SANDBOX_SETTLE_MS,
    ...timesOf(timing),
  })
}
