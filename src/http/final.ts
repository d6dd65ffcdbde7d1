import { NOT_NOW } from '../protect/not-now.ts'

/** Whether a reply stands for ever, or lets the same request run again. */
export type Finality = 'store' | 'retry'

export type FinalRules = (status: number) => Finality

/**
 * Which replies are final depends on what is known, not on hope. A transaction that answers "not now" or fails is rolled
 * back, so it may run again. A handler may have done something before it answered: everything is stored, unless its
 * route declares that a status means that nothing was done, or that running it twice does no harm.
 */
export function finalRules(
  given: Readonly<Record<string, Finality>>,
  protect: 'handler' | 'transaction' | 'operation' | 'rerunnable',
  refuse: (detail: string) => never,
): FinalRules {
  const rules = new Map<string, Finality>()
  for (const [pattern, finality] of Object.entries(given)) {
    if (!/^[2-5](?:xx|\d\d)$/.test(pattern)) {
      refuse(`final names ${JSON.stringify(pattern)}; write a status such as 404, or a class such as 5xx.`)
    }
    if (finality !== 'store' && finality !== 'retry') refuse(`final[${pattern}] is store or retry.`)
    rules.set(pattern, finality)
  }
  const usual = (status: number): Finality => {
    if (status >= 500) return protect === 'handler' ? 'store' : 'retry'
    const undone = protect === 'transaction' || protect === 'operation'
    return undone && NOT_NOW.includes(status) ? 'retry' : 'store'
  }
  return (status) => rules.get(`${status}`) ?? rules.get(`${Math.trunc(status / 100)}xx`) ?? usual(status)
}
