import { AssertionError } from 'node:assert'
import { OnlyonceError } from '../core/errors.ts'
import { refuseUnknown } from '../core/options.ts'
import { TESTING_LIMITS } from './limits.ts'

/** How long to wait for a fact. */
export interface WaitOptions {
  /** @default 10_000 */
  readonly timeoutMs?: number
}

interface Waiter<T> {
  readonly test: (fact: T) => boolean
  readonly settle: (fact: T) => void
  readonly fail: (error: unknown) => void
}

/** Promises that wait for a fact: tests await what has happened instead of sleeping until it should have. */
export class Waiters<T> {
  readonly #waiting = new Set<Waiter<T>>()
  #closed = false

  get size(): number {
    return this.#waiting.size
  }

  /** Resolves with the first fact offered from now on that passes the test. */
  wait(test: (fact: T) => boolean, what: () => string, options: WaitOptions = {}): Promise<T> {
    refuseUnknown('A wait for a fact', options, { timeoutMs: true })
    const { timeoutMs = TESTING_LIMITS.waitMaxMs } = options
    const promise = new Promise<T>((resolve, reject) => {
      if (this.#closed) return reject(failure(`The proxy is closed, so a test cannot wait for ${what()}.`))
      if (this.#waiting.size >= TESTING_LIMITS.waitersMax) {
        return reject(
          new OnlyonceError('overloaded', { detail: 'Too many promises wait for facts of one proxy.' }),
        )
      }
      const leave = () => {
        clearTimeout(timer)
        this.#waiting.delete(waiter)
      }
      const waiter: Waiter<T> = {
        test,
        settle: (fact) => {
          leave()
          resolve(fact)
        },
        fail: (error) => {
          leave()
          reject(error ?? failure(`The proxy was closed while a test waited for ${what()}.`))
        },
      }
      const timer = setTimeout(() => {
        waiter.fail(failure(`Waited ${timeoutMs} ms in vain for ${what()}.`))
      }, timeoutMs)
      this.#waiting.add(waiter)
    })
    // A test that fails before it awaits this must show its own error, not an unhandled rejection of ours.
    promise.catch(() => {})
    return promise
  }

  offer(fact: T): void {
    for (const waiter of [...this.#waiting]) {
      try {
        if (waiter.test(fact)) waiter.settle(fact)
      } catch (error) {
        waiter.fail(error)
      }
    }
  }

  /** Fails everyone who still waits. */
  close(): void {
    this.#closed = true
    for (const waiter of [...this.#waiting]) waiter.fail(undefined)
  }
}

function failure(message: string): AssertionError {
  return new AssertionError({ message })
}
