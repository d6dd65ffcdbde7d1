import type { Mutant } from './mutants.ts'

const ANSWERS = 'src/client/answers.test.ts'
const CHECKOUT = 'apps/checkout/test/served.test.ts'
const CLASSES = 'src/client/classify.test.ts'
const FETCH = 'src/client/fetch.test.ts'
const LIFE = 'src/client/keys/pending.life.test.ts'
const PENDING = 'src/client/keys/pending.test.ts'

/** Faults in what a client concludes, sends and keeps. */
export const CLIENT_MUTANTS: readonly Mutant[] = [
  {
    name: 'take a refusal after a lost answer for proof that nothing was executed',
    file: 'src/client/classify.ts',
    edits: [
      {
        from: `return resumed || has('unknown') ?`,
        to: `return resumed || attempts.at(-1)?.executed === 'unknown' ?`,
      },
    ],
    tests: [CLASSES],
  },
  {
    name: 'let a key that was sent before count as new',
    file: 'src/client/classify.ts',
    edits: [{ from: `return resumed || has('unknown') ?`, to: `return has('unknown') ?` }],
    tests: [CLASSES],
  },
  {
    name: 'believe that a reused key was not executed',
    file: 'src/client/judge.ts',
    edits: [{ from: `    code === 'key_reused' ||`, to: `` }],
    tests: [ANSWERS],
  },
  {
    name: 'ask again and again for a failure that is stored',
    file: 'src/client/judge.ts',
    edits: [{ from: `if (replayed && status >= 500) return verdict('stop', 'unknown')`, to: `` }],
    tests: [ANSWERS],
  },
  {
    name: 'believe the status where the answer says less',
    file: 'src/client/judge.ts',
    edits: [{ from: `(evidence ?? guessed)`, to: `(guessed ?? evidence)` }],
    tests: [ANSWERS],
  },
  {
    name: 'hand out the head of an answer before its body is there',
    file: 'src/client/call.ts',
    edits: [
      {
        from: `const text = await Promise.race([response.clone().text(), ended])`,
        to: `const text = await Promise.race([response.status < 300 ? '' : response.clone().text(), ended])`,
      },
    ],
    tests: [FETCH],
    only: 'cut off|head of a result',
  },
  {
    name: 'return a refusal while an earlier attempt is in doubt',
    file: 'src/client/call.ts',
    edits: [{ from: `(outcome || proved() === 'not_executed')`, to: `(outcome || proved() !== 'executed')` }],
    tests: [FETCH],
    only: 'then 401|then 403',
  },
  {
    name: 'count waits for an attempt in progress as retries',
    file: 'src/client/call.ts',
    edits: [{ from: `if (next === 'retry') {`, to: `if (next === 'retry' || next === 'wait') {` }],
    tests: [FETCH],
    only: 'in progress until the deadline',
  },
  {
    name: 'wait past the deadline',
    file: 'src/client/call.ts',
    edits: [{ from: `if (delayMs >= left()) throw failure(code)`, to: `` }],
    tests: [FETCH],
    only: 'when to come back|until the deadline',
  },
  {
    name: 'send a stream that cannot be sent again',
    file: 'src/client/request.ts',
    edits: [
      {
        from: `if ('getReader' in body || Symbol.asyncIterator in body) {`,
        to: `if (Symbol.asyncIterator in new Map()) {`,
      },
    ],
    tests: [FETCH],
    only: 'cannot be sent twice',
  },
  {
    name: 'let every call of a client try while its circuit is open',
    file: 'src/client/limits.ts',
    edits: [{ from: `if (this.#probing) return this.#given.openMs`, to: `` }],
    tests: [FETCH],
    only: 'circuit breaker',
  },
  {
    name: 'let all calls that wait for a circuit come back at one moment',
    file: 'src/client/call.ts',
    edits: [{ from: `closedMs + Math.random() * maxDelayMs`, to: `closedMs` }],
    tests: [FETCH],
    only: 'at one moment',
  },
  {
    name: 'let a client retry for ever when its budget is spent',
    file: 'src/client/limits.ts',
    edits: [{ from: `if (this.#tokens < 1) return false`, to: `` }],
    tests: ['test/client/recovery.faults.test.ts'],
  },
  {
    name: 'give an edited payload a new key while the first is in doubt',
    file: 'src/client/keys/pending.ts',
    edits: [{ from: `if (executed !== 'no') throw new OutcomeUnknown(told)`, to: `` }],
    tests: [LIFE],
  },
  {
    name: 'send a key before it is kept',
    file: 'src/client/keys/pending.ts',
    edits: [
      {
        from: `await write(item, kept).catch((cause) => refuse(key, false, cause))`,
        to: `setTimeout(() => void write(item, kept), 5)`,
      },
    ],
    tests: [LIFE, PENDING],
  },
  {
    name: 'make a new key for a tap that has waited for another one',
    file: 'src/client/keys/pending.ts',
    edits: [{ from: `before.state === 'free' || waited)`, to: `before.state === 'free')` }],
    tests: [LIFE],
  },
  {
    name: 'settle an action of another tab that has gone on meanwhile',
    file: 'src/client/keys/pending.ts',
    edits: [
      {
        from: `now?.key === key && now.state === 'open' ? note(item, now, executed)`,
        to: `now !== null ? note(item, kept, executed)`,
      },
    ],
    tests: [PENDING],
    only: 'answer comes late',
  },
  {
    name: 'take any failure of a page for the end of its action',
    file: 'src/client/keys/pending.ts',
    edits: [{ from: `if (failed instanceof NotExecuted) await`, to: `if (failed instanceof Error) await` }],
    tests: [LIFE],
  },
  {
    name: 'give the key of one user to another',
    file: 'src/client/keys/pending.ts',
    edits: [{ from: `JSON.stringify([name, user])`, to: `JSON.stringify([name, typeof user])` }],
    tests: [PENDING],
    only: 'another login',
  },
  {
    name: 'ask no other tab for a key in doubt',
    file: 'src/client/keys/tab.ts',
    edits: [
      { from: `storage === own ? await ask('read', name)`, to: `storage === null ? await ask('read', name)` },
    ],
    tests: [PENDING],
    only: 'in doubt is that of both',
  },
  {
    name: 'forget what was not shown when Strict Mode takes a component away and back',
    file: 'src/react/index.ts',
    edits: [{ from: `queueMicrotask(() => {`, to: `;((end: () => void) => end())(() => {` }],
    tests: ['test/react/hook.test.ts'],
    only: 'no component was there',
  },
  {
    name: 'serve the checkout beside a processor that may be real',
    file: 'apps/payments/config.ts',
    edits: [
      { from: `production === null && stripe === null && gatewayUrl === null`, to: `production === null` },
    ],
    tests: [CHECKOUT],
  },
  {
    name: 'serve the checkout in production where the configuration says so by mistake',
    file: 'apps/checkout/stage/index.ts',
    edits: [
      {
        from: `if (!config.checkout || config.production !== null) throw`,
        to: `if (!config.checkout) throw`,
      },
    ],
    tests: [CHECKOUT],
  },
  {
    name: 'let the page of another site that points its name here make things go wrong',
    file: 'apps/checkout/stage/index.ts',
    edits: [{ from: `if (!isLoopback(request.hostname)) throw new Refused('not_found')`, to: `` }],
    tests: [CHECKOUT],
  },
]
