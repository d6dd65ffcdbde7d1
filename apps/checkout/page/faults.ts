/** What can go wrong: who does it, and how the page says it. */

export const FAULTS = {
  none: 'Nothing',
  lost_answer: 'Lost answer',
  slow_processor: 'Slow answer',
  server_killed: 'Server killed',
  offline: 'Offline',
  double_tap: 'Double tap',
  reload: 'Reload',
} as const
export type FaultName = keyof typeof FAULTS

export const ABOUT: Readonly<Record<FaultName, string>> = {
  none: 'The payment goes through at the first attempt.',
  lost_answer: 'The server charges the card and answers. The answer never arrives here.',
  slow_processor: 'The processor charges the card and answers after 4 s. The page asks again after 2.5 s.',
  server_killed:
    'The server is killed in the middle: after the card was charged, before it could write that down. Another server goes on.',
  offline: 'The page is told that it is offline for 3 s. Nothing is sent in that time.',
  double_tap: 'The Pay button is pressed a second time while the first payment is under way.',
  reload: 'The page is reloaded while the payment is under way. The answer comes to a page that is gone.',
}

/** What is asked of the stage behind the server. The other faults are of the page itself. */
export const STAGED: Readonly<Record<FaultName, string>> = {
  none: 'none',
  lost_answer: 'lost_answer',
  slow_processor: 'slow_processor',
  server_killed: 'server_killed',
  offline: 'none',
  double_tap: 'none',
  // Long enough for a reload in the middle.
  reload: 'slow_processor',
}

export const OFFLINE_MS = 3_000
export const SECOND_TAP_MS = 60
export const RELOAD_AFTER_MS = 900

export async function armStage(fault: FaultName): Promise<void> {
  const response = await fetch('/checkout/fault', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ fault: STAGED[fault] }),
  })
  if (!response.ok) throw new Error(`The fault could not be set: ${response.status}.`)
}

/** What this page brings about by itself, once its payment has begun. */
export function strike(fault: FaultName, payAgain: () => void): void {
  if (fault === 'offline') {
    Object.defineProperty(navigator, 'onLine', { configurable: true, get: () => false })
    setTimeout(() => Reflect.deleteProperty(navigator, 'onLine'), OFFLINE_MS)
  }
  if (fault === 'double_tap') setTimeout(payAgain, SECOND_TAP_MS)
  if (fault === 'reload') setTimeout(() => location.reload(), RELOAD_AFTER_MS)
}
