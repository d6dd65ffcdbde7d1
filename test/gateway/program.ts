/** The gateway as a process of its own. Says on which port it listens, and ends with whoever started it. */
import type { AddressInfo } from 'node:net'
import { GatewayServer } from './server.ts'

const { GATEWAY_OPTIONS, GATEWAY_PORT } = process.env as Record<string, string>
const server = await new GatewayServer(JSON.parse(GATEWAY_OPTIONS!)).listen(Number(GATEWAY_PORT))
process.stdout.write(`${(server.address() as AddressInfo).port}\n`)
process.stdin.resume().on('end', () => process.exit(0))
