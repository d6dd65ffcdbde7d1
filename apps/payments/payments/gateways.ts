import { notExecuted } from 'onlyonce'
import type { Gateway, Mode } from '../gateway/index.ts'

/** The processors of a service, by the mode that they work in. */
export interface Gateways {
  readonly test?: Gateway
  readonly live?: Gateway
}

/** `acct_1:live` is an account in one mode: everything of an account and its test data are apart by their very scope. */
export function modeOf(account: string): Mode {
  return account.endsWith(':live') ? 'live' : 'test'
}

/** Nothing was sent where there is nobody to send it to: the record stays retryable until there is. */
export function gatewayOf(gateways: Gateways, account: string): Gateway {
  const mode = modeOf(account)
  const gateway = gateways[mode]
  if (gateway === undefined) throw notExecuted(new Error(`No processor is set up for ${mode} mode.`))
  return gateway
}

/** What a step that calls a processor has to know of it. */
export function boundsOf({ timeoutMs, visibleWithinMs, keyLifetimeMs }: Gateway) {
  return { timeoutMs, visibleWithinMs, keyLifetimeMs }
}
