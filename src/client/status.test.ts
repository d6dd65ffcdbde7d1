import { describe, expect, it, vi } from 'vitest'
import { type ClientOptions, idempotentFetch } from './index.ts'

const ENDPOINT = 'https://api.example.com/v1/payments'

describe('the status of a key', () => {
  const ask = (body: unknown, options: ClientOptions = {}) =>
    idempotentFetch({ baseUrl: ENDPOINT, fetch: async () => Response.json(body), ...options }).status('key-1')
  it.each([
    [
      'no such key',
      { known: false, uses: [], detail: 'not seen' },
      { state: 'none', executed: 'unknown', detail: 'not seen' },
    ],
    ['a decline', { uses: [{ state: 'completed', status: 402 }] }, { state: 'completed', executed: 'no' }],
    [
      'a stored failure',
      { uses: [{ state: 'completed', status: 500 }] },
      { state: 'completed', executed: 'unknown' },
    ],
    ['retryable', { uses: [{ state: 'retryable' }] }, { state: 'retryable', executed: 'unknown' }],
    [
      'two uses',
      { uses: [{ state: 'completed', status: 402 }, { state: 'parked' }] },
      { state: 'parked', executed: 'unknown' },
    ],
    [
      'two uses, one done',
      { uses: [{ state: 'parked' }, { state: 'completed', status: 200 }] },
      { executed: 'yes' },
    ],
  ])('%s', async (_, body, expected) => {
    expect(await ask(body)).toMatchObject(expected)
  })

  it('is asked for at an address of your own, in a form of your own', async () => {
    const fetch = vi.fn(async () => new Response('paid'))
    const options: ClientOptions = {
      fetch,
      statusUrl: (key) => `https://b.example.com/keys?k=${key}`,
      readStatus: async (response, key) => ({
        key,
        state: 'completed',
        executed: (await response.text()) === 'paid' ? 'yes' : 'unknown',
        status: null,
        location: null,
        detail: '',
      }),
    }
    expect(await idempotentFetch(options).status('key-1')).toMatchObject({ executed: 'yes' })
    expect(fetch).toHaveBeenCalledWith('https://b.example.com/keys?k=key-1', expect.anything())
  })

  it('is given up when no answer comes', async () => {
    const fetch = (_: unknown, { signal }: RequestInit) =>
      new Promise<Response>((_, reject) => {
        signal?.addEventListener('abort', () => reject(new Error('aborted')))
      })
    const client = idempotentFetch({ baseUrl: ENDPOINT, fetch, attemptTimeoutMs: 5 })
    await expect(client.status('key-1')).rejects.toThrow('aborted')
  })

  it('is an error where the answer is none', async () => {
    const client = idempotentFetch({
      baseUrl: ENDPOINT,
      fetch: async () => new Response('', { status: 401 }),
    })
    await expect(client.status('key-1')).rejects.toThrow(/could not be read: 401/)
  })
})
