/** The sandbox processor, as the page sees it: what it has booked, and how it is told to be slow. */
import { join } from 'node:path'
import type { GatewayState } from '../../gateway/index.ts'
import {
  type FaultRule,
  type JournalEntry,
  readToken,
  type SeenRequest,
  TOKEN_FILE,
} from '../../gateway/index.ts'
import { findGateway } from '../../payments/sandbox.ts'

export interface Processor {
  readonly url: string
  journal(): Promise<readonly JournalEntry[]>
  /** The requests that came with a key, in order. */
  requests(key: string): Promise<readonly SeenRequest[]>
  state(): Promise<GatewayState>
  /** Takes all earlier faults back, lets go of what is held, and adds these. */
  misbehave(rules: readonly FaultRule[]): Promise<void>
  release(): Promise<void>
}

/** The sandbox that runs in this folder. */
export async function processorIn(folder: string): Promise<Processor> {
  const url = await findGateway(folder)
  if (url === null) throw new Error('The sandbox processor does not answer.')
  const headers = { authorization: `Bearer ${readToken(join(folder, TOKEN_FILE))}` }
  async function ask<T>(method: string, command: string, body?: unknown): Promise<T> {
    const response = await fetch(`${url}/_sandbox/${command}`, {
      method,
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    if (!response.ok) throw new Error(`The sandbox processor answered ${response.status}.`)
    return (await response.json()) as T
  }
  return {
    url,
    journal: () => ask('GET', 'journal'),
    requests: (key) => ask('GET', `requests?key=${encodeURIComponent(key)}`),
    state: () => ask('GET', 'state'),
    async misbehave(rules) {
      await ask('DELETE', 'faults')
      await ask('POST', 'release', {})
      if (rules.length > 0) await ask('POST', 'faults', rules)
    },
    async release() {
      await ask('POST', 'release', {})
    },
  }
}
