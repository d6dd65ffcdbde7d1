import { createHash } from 'node:crypto'
import { request as httpRequest } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from 'onlyonce/testing'
import type { Action, Attempt } from './judge/history.ts'
import type { Site, SiteAccount } from './site.ts'

/** How a client treats one request: all of it is drawn from the seed before the first byte is sent. */
interface Manner {
  readonly timeoutMs: number
  readonly hangUpAfterMs: number | null
  /** Sends the same request twice, this long apart. */
  readonly secondTapMs: number | null
  readonly triesMax: number
  /** It never comes back after the first try: only a worker can finish its payment. */
  readonly givesUp: boolean
}

/** One thing that a client wants done, with its key. */
interface Wish {
  readonly account: SiteAccount
  readonly action: Action
  readonly key: string
  readonly path: string
  readonly body: Readonly<Record<string, unknown>>
  readonly payment: string | null
}

export interface PhonesOptions {
  readonly site: Site
  readonly random: Random
  readonly name: string
  readonly count: number
  /** What clients want, and how often: the share of each action after a payment was made. */
  readonly mix: Mix
  readonly until: () => boolean
  /** Where every attempt is noted. */
  readonly log: Attempt[]
}

export interface Mix {
  readonly manual: number
  readonly refund: number
  readonly transfer: number
  readonly decline: number
  /** The share of payments that many clients send at once, and how many. */
  readonly herd: number
  readonly herdSize: number
}

export const USUAL_MIX: Mix = { manual: 0.4, refund: 0.4, transfer: 0.1, decline: 0.1, herd: 0, herdSize: 0 }

const CURRENCIES = ['EUR', 'USD', 'JPY'] as const
const DECLINING = ['pm_card_chargeDeclined', 'pm_card_chargeDeclinedInsufficientFunds'] as const
/** A number that passes Luhn's check, as people type it into wrong fields. It must be found nowhere afterwards. */
export const CANARY = '4929007735120847'
const ANSWER_MAX_BYTES = 1_000_000

/** Clients that behave like phones. Resolves when all of them are done. */
export async function runPhones(options: PhonesOptions): Promise<void> {
  await Promise.all(Array.from({ length: options.count }, (_, n) => new Phone(options, n).run()))
}

class Phone {
  readonly #options: PhonesOptions
  readonly #random: Random
  readonly #name: string
  #wishes = 0

  constructor(options: PhonesOptions, n: number) {
    this.#options = options
    this.#random = options.random.fork(100 + n)
    this.#name = `${options.name}-${options.random.seed}-${n}`
  }

  async run(): Promise<void> {
    while (!this.#options.until()) {
      await this.#pay()
      await sleep(this.#random.integer(20))
    }
  }

  async #pay(): Promise<void> {
    const { site, mix } = this.#options
    const random = this.#random
    const account = random.pick(site.accounts)
    if (random.chance(0.02)) return await this.#leak(account)
    if (random.chance(mix.transfer)) return await this.#transfer(account)
    const manual = random.chance(mix.manual)
    const amount = 500 + random.integer(50_000)
    const wish = this.#wish(account, 'create', '/v1/payments', {
      amount,
      currency: random.pick(CURRENCIES),
      payment_method: random.chance(mix.decline) ? random.pick(DECLINING) : 'pm_card_visa',
      capture_method: manual ? 'manual' : 'automatic',
    })
    const herd = random.chance(mix.herd) ? mix.herdSize : 0
    const payment = await this.#fulfil(wish, herd)
    if (payment === null) return
    if (random.chance(0.05)) await this.#reuse(wish)
    const id = String(payment.id)
    if (manual) await this.#captureOrCancel(account, id, amount)
    if (random.chance(mix.refund)) await this.#refund(account, id, amount)
  }

  /** Captures, cancels or both at once: then one of them has to lose. */
  async #captureOrCancel(account: SiteAccount, payment: string, amount: number): Promise<void> {
    const random = this.#random
    const part = 1 + random.integer(amount)
    const capture = () =>
      this.#fulfil(
        this.#wish(
          account,
          'capture',
          `/v1/payments/${payment}/capture`,
          random.chance(0.5) ? {} : { amount: part },
          payment,
        ),
      )
    const cancel = () =>
      this.#fulfil(this.#wish(account, 'cancel', `/v1/payments/${payment}/cancel`, {}, payment))
    const choice = random.integer(4)
    if (choice === 0) await cancel()
    else if (choice === 1) await Promise.all([capture(), cancel()])
    else if (choice === 2) await Promise.all([capture(), capture()])
    else await capture()
  }

  async #refund(account: SiteAccount, payment: string, amount: number): Promise<void> {
    const random = this.#random
    const count = 1 + random.integer(3)
    const refunds = Array.from({ length: count }, () =>
      this.#fulfil(
        this.#wish(
          account,
          'refund',
          `/v1/payments/${payment}/refunds`,
          { amount: 1 + random.integer(amount) },
          payment,
        ),
      ),
    )
    await Promise.all(refunds)
  }

  async #transfer(account: SiteAccount): Promise<void> {
    const others = this.#options.site.accounts.filter((other) => other !== account)
    const wish = this.#wish(account, 'transfer', '/v1/transfers', {
      amount: 1 + this.#random.integer(500),
      currency: this.#random.pick(CURRENCIES),
      destination: this.#random.pick(others).accountId,
    })
    await this.#fulfil(wish)
  }

  /** The key with another body has to be refused; the key at another account is another key. */
  async #reuse(wish: Wish): Promise<void> {
    const manner = this.#manner()
    const changed = { ...wish, body: { ...wish.body, amount: Number(wish.body.amount) + 1 } }
    await this.#send({ ...changed }, manner)
    const other = this.#random.pick(this.#options.site.accounts.filter((one) => one !== wish.account))
    await this.#fulfil({ ...wish, account: other })
  }

  /** A person types a card number where none belongs. */
  async #leak(account: SiteAccount): Promise<void> {
    const spaced = CANARY.replace(/(\d{4})(?=\d)/g, '$1 ')
    const places: Partial<Wish>[] = [
      { key: CANARY },
      { body: { amount: 100, currency: 'EUR', payment_method: `pm_${CANARY}` } },
      { body: { amount: 100, currency: 'EUR', payment_method: 'pm_card_visa', reference: spaced } },
      { body: { amount: 100, currency: 'EUR', payment_method: 'pm_card_visa', metadata: { note: CANARY } } },
      { path: `/v1/payments/${CANARY}/capture`, body: {} },
    ]
    const wish = this.#wish(account, 'create', '/v1/payments', {})
    await this.#send({ ...wish, ...this.#random.pick(places) }, this.#manner())
  }

  #wish(
    account: SiteAccount,
    action: Action,
    path: string,
    body: Readonly<Record<string, unknown>>,
    payment: string | null = null,
  ): Wish {
    this.#wishes += 1
    return { account, action, key: `${this.#name}-${this.#wishes}`, path, body, payment }
  }

  #manner(): Manner {
    const random = this.#random
    return {
      timeoutMs: 300 + random.integer(6_000),
      hangUpAfterMs: random.chance(0.1) ? random.integer(300) : null,
      secondTapMs: random.chance(0.2) ? random.integer(6) : null,
      triesMax: 4 + random.integer(8),
      givesUp: random.chance(0.08),
    }
  }

  /** Sends until an answer is final, as a good client does. The reply, where it was a success. */
  async #fulfil(wish: Wish, herd = 0): Promise<Record<string, unknown> | null> {
    const manner = this.#manner()
    for (let tries = 0; tries < manner.triesMax; tries += 1) {
      const crowd = Array.from({ length: tries === 0 ? herd : 0 }, () => this.#send(wish, manner))
      const taps = [this.#send(wish, manner)]
      if (manner.secondTapMs !== null && tries === 0) {
        await sleep(manner.secondTapMs)
        taps.push(this.#send(wish, { ...manner, hangUpAfterMs: null }))
      }
      const answers = await Promise.all([...taps, ...crowd])
      const good = answers.find(({ status }) => status !== null && status < 300 && status !== 202)
      if (good !== undefined) return JSON.parse(good.text) as Record<string, unknown>
      if (answers.some(isFinal) || manner.givesUp) return null
      await sleep(Math.min(4_000, 100 * 2 ** tries) * (0.5 + this.#random.next() / 2))
    }
    return null
  }

  async #send(wish: Wish, manner: Manner): Promise<Attempt> {
    const server = this.#random.integer(this.#options.site.front.length)
    const body = JSON.stringify(wish.body)
    const started = performance.timeOrigin + performance.now()
    const end = await exchange(this.#options.site.front[server]!.url(wish.path), wish, body, manner)
    const attempt: Attempt = {
      account: wish.account.account,
      action: wish.action,
      key: wish.key,
      body: createHash('sha256').update(body).digest('hex').slice(0, 16),
      payment: wish.payment,
      amount: typeof wish.body.amount === 'number' ? wish.body.amount : null,
      sentAt: started,
      endedAt: performance.timeOrigin + performance.now(),
      server: `api-${server}`,
      ...end,
    }
    this.#options.log.push(attempt)
    return attempt
  }
}

/** A final answer: the same request would get it again. */
function isFinal({ status }: Attempt): boolean {
  return status !== null && status >= 400 && status < 500 && ![408, 409, 425, 429].includes(status)
}

type Exchange = Pick<Attempt, 'end' | 'status' | 'replayed' | 'contentType' | 'text'>

const NO_ANSWER = { status: null, replayed: false, contentType: '', text: '' }

function exchange(url: string, wish: Wish, body: string, manner: Manner): Promise<Exchange> {
  return new Promise((resolve) => {
    const request = httpRequest(url, {
      method: 'POST',
      agent: false,
      headers: {
        authorization: `Bearer ${wish.account.apiKey}`,
        'idempotency-key': wish.key,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      },
    })
    const giveUp = (end: 'timed_out' | 'hung_up') => {
      request.destroy()
      finish({ end, ...NO_ANSWER })
    }
    const timers = [setTimeout(() => giveUp('timed_out'), manner.timeoutMs)]
    if (manner.hangUpAfterMs !== null) timers.push(setTimeout(() => giveUp('hung_up'), manner.hangUpAfterMs))
    const finish = (ended: Exchange) => {
      for (const timer of timers) clearTimeout(timer)
      resolve(ended)
    }
    request.on('error', () => finish({ end: 'network_error', ...NO_ANSWER }))
    request.on('response', (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (part) => {
        if (text.length < ANSWER_MAX_BYTES) text += part
      })
      response.on('error', () => finish({ end: 'network_error', ...NO_ANSWER }))
      response.on('close', () => {
        // An answer that was cut off says nothing: its client cannot read it.
        if (!response.complete) return finish({ end: 'network_error', ...NO_ANSWER })
        finish({
          end: 'answered',
          status: response.statusCode ?? null,
          replayed: response.headers['idempotent-replayed'] === 'true',
          contentType: String(response.headers['content-type'] ?? ''),
          text,
        })
      })
    })
    request.end(body)
  })
}
