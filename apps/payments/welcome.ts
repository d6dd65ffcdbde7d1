import { randomUUID } from 'node:crypto'
import { DEMO_API_KEY } from './accounts/index.ts'
import type { Service } from './service.ts'

/** What is told when the service is ready. Programs wait for its first line. */
export function welcome({ config, opsToken }: Service, address: string | null): string {
  const { role, demo, database, production } = config
  if (address === null) return 'Ready'
  // What a start prints is kept by whatever collects its output: no key and no token there.
  if (!demo || role === 'worker' || production !== null) return `Ready: ${address}`
  const body = { amount: 1200, currency: 'EUR', payment_method: 'pm_card_visa', reference: 'order-1' }
  const curl = [
    `curl -i ${address}/v1/payments`,
    `-H 'Authorization: Bearer ${DEMO_API_KEY}'`,
    `-H 'Idempotency-Key: ${randomUUID()}'`,
    "-H 'Content-Type: application/json'",
    `-d '${JSON.stringify(body)}'`,
  ]
  return `Ready: ${address}

${curl.map((part, i) => (i === 0 ? `  ${part}` : `    ${part}`)).join(' \\\n')}

${config.checkout ? `In a browser, with everything that goes wrong on the way: ${address}/\n` : ''}Send it twice: the second answer is the first one, with Idempotent-Replayed: true.
With pm_card_chargeDeclined and a new key: 402, and replayed as well.
All there is to ask for: ${address}${config.docs ? '/docs' : '/openapi.json'}${
    database.kind === 'embedded' ? `\nFor /ops and /metrics: Authorization: Bearer ${opsToken}` : ''
  }
`
}
