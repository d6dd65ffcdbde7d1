import { cleanUpLater } from '../setup/clean-up.ts'
import { type Gateway, type GatewayClient, gatewayClient, startGateway } from './client.ts'
import type { GatewayOptions } from './wire.ts'

/**
 * A gateway and a client of it, until the test is over.
 *
 * @example
 * const { gateway, client } = await openGateway()
 */
export async function openGateway(
  options: GatewayOptions = {},
): Promise<{ gateway: Gateway; client: GatewayClient }> {
  const gateway = await startGateway(options)
  const client = gatewayClient(gateway.url)
  cleanUpLater(async () => {
    client.close()
    await gateway.stop()
  })
  return { gateway, client }
}
