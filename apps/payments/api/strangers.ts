import { isIPv6 } from 'node:net'
import type { FastifyRequest } from 'fastify'
import { Refused } from '../problems.ts'
import { API_LIMITS } from './limits.ts'

interface Bucket {
  points: number
  atMs: number
}

/**
 * Limits what one address may try without a credential that this process knows: API keys and tokens that open nothing, and paths that
 * do not exist. It counts in memory, before the database is asked, because its purpose is to keep such requests away from the database.
 * Every process counts by itself.
 */
export class Strangers {
  readonly #perMinute: number
  readonly #now: () => number
  /** By address, those used last at the end. */
  readonly #buckets = new Map<string, Bucket>()

  constructor(perMinute: number, now: () => number = () => performance.now()) {
    this.#perMinute = perMinute
    this.#now = now
  }

  /**
   * Takes one try of the address. Throws where none is left; the points come back evenly over a minute. What it returns gives the try
   * back: for a request that had a good credential after all. It knows the address, which the connection forgets when the client hangs up.
   */
  take({ ip }: Pick<FastifyRequest, 'ip'>): () => void {
    const name = networkOf(ip)
    const bucket = this.#bucketOf(name)
    if (bucket.points < 1) {
      const waitMs = ((1 - bucket.points) * 60_000) / this.#perMinute
      throw new Refused('rate_limited', {
        headers: {
          'Retry-After': `${Math.max(1, Math.ceil(waitMs / 1_000))}`,
          'Stripe-Should-Retry': 'true',
          'Stripe-Rate-Limited-Reason': 'address-rate',
        },
      })
    }
    bucket.points -= 1
    return () => {
      const same = this.#bucketOf(name)
      same.points = Math.min(this.#perMinute, same.points + 1)
    }
  }

  #bucketOf(name: string): Bucket {
    const nowMs = this.#now()
    const known = this.#buckets.get(name)
    const { points, atMs } = known ?? { points: this.#perMinute, atMs: nowMs }
    const bucket = known ?? { points, atMs }
    bucket.points = Math.min(this.#perMinute, points + ((nowMs - atMs) * this.#perMinute) / 60_000)
    bucket.atMs = nowMs
    this.#buckets.delete(name)
    this.#buckets.set(name, bucket)
    const [oldest] = this.#buckets.keys()
    if (this.#buckets.size > API_LIMITS.strangerAddressesMax && oldest !== undefined) {
      this.#buckets.delete(oldest)
    }
    return bucket
  }
}

/**
 * What one client can change at will is one address: the last 64 bits of IPv6 are its own to choose. An IPv4 address that came over an
 * IPv6 socket is that IPv4 address.
 *
 * @example
 * networkOf('2001:db8::1:2:3:4') // '2001:db8:0:0'
 */
export function networkOf(ip: string | undefined): string {
  // The connection is gone already: all such requests share a place, and none of them is answered.
  if (ip === undefined) return 'gone'
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(ip)?.[1]
  if (mapped !== undefined) return mapped
  const address = ip.split('%', 1)[0]!
  if (!isIPv6(address)) return ip
  // The platform writes out what is abbreviated: one form for each address.
  const [head = '', tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::')
  const groups = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = Array.from({ length: 8 - groups.length - after.length }, () => '0')
  return [...groups, ...zeros, ...after].slice(0, 4).join(':')
}
