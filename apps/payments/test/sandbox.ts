import { cleanUpLater } from '../../../test/setup/clean-up.ts'
import { compiled } from '../../../test/setup/compiled.ts'
import { type GatewayOptions, type GatewayProcess, startGateway } from '../../gateway/index.ts'
import type { Gateway } from '../gateway/index.ts'
import { type StripeOptions, stripeGateway } from '../gateway/stripe.ts'

const PROGRAM = new URL('../../gateway/program.ts', import.meta.url)

export interface Sandbox {
  readonly gateway: GatewayProcess
  /** The service's side of it. */
  readonly client: Gateway
}

/** A sandbox processor in a process of its own, with a journal of its own. It ends with the test, or with the file. */
export async function openSandbox(
  options: GatewayOptions = {},
  client: Partial<StripeOptions> = {},
): Promise<Sandbox> {
  const gateway = await startGateway({ program: compiled(PROGRAM), ...options })
  cleanUpLater(() => gateway.stop())
  return { gateway, client: clientOf(gateway, client) }
}

/** With short times: what takes an hour at Stripe takes a second here. */
export function clientOf(gateway: GatewayProcess, options: Partial<StripeOptions> = {}): Gateway {
  const { host, port, apiKey } = gateway
  return stripeGateway({
    secretKey: apiKey,
    mode: 'test',
    host,
    port,
    protocol: 'http',
    timeoutMs: 2_000,
    visibleWithinMs: 1_000,
    ...options,
  })
}
