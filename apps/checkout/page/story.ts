/** Shows what happened: each attempt on a common scale of time, and the verdict of the processor's journal. */
import { byId, euro, make, seconds } from './dom.ts'
import { type AttemptEntry, type Entry, keysOf, type Order } from './order.ts'

export interface Books {
  readonly rows: readonly {
    readonly kind: string
    readonly payment: string
    readonly amount: number
    readonly currency: string
    readonly at: string
  }[]
  readonly requests: readonly (string | null)[]
}

/** The scale is never shorter, so that a quick payment is a short bar. */
const SCALE_MIN_MS = 2_000

export async function readBooks(order: Order): Promise<Books> {
  const keys = keysOf(order)
  if (keys.length === 0) return { rows: [], requests: [] }
  const response = await fetch(`/checkout/books?keys=${encodeURIComponent(keys.join(','))}`)
  if (!response.ok) throw new Error(`The journal could not be read: ${response.status}.`)
  return (await response.json()) as Books
}

const chargesIn = ({ rows }: Books) => rows.filter(({ kind }) => kind === 'capture').length
const count = (n: number, one: string, many = `${one}s`) => `${n} ${n === 1 ? one : many}`
const times = (n: number) => (n === 1 ? 'once' : n === 2 ? 'twice' : `${n} times`)

export function showVerdict(order: Order, books: Books): void {
  const charges = chargesIn(books)
  const attempts = order.entries.filter(({ kind }) => kind === 'attempt').length
  const [state, title] = titleOf(order, charges)
  const facts =
    order.begunAt === null
      ? 'Press Pay.'
      : [count(attempts, 'attempt'), count(keysOf(order).length, 'key'), count(charges, 'charge')].join(' · ')
  const place = byId('verdict')
  place.dataset.state = state
  const why = whyOf(order, charges)
  place.replaceChildren(
    make('strong', {}, title),
    make('span', {}, facts),
    why === null ? '' : make('p', { class: 'why' }, why),
  )
}

function titleOf({ begunAt, paying, ended }: Order, charges: number): [state: string, title: string] {
  if (begunAt === null) return ['idle', 'Nothing sent yet']
  if (charges > 1) return ['bad', `Charged ${times(charges)}`]
  if (paying) return ['busy', charges === 1 ? 'Charged once, and the page does not know it yet' : 'Paying…']
  if (ended === 'declined') return ['idle', 'Declined, not charged']
  if (ended === 'paid' && charges === 1) return ['good', 'Charged once']
  return ['busy', charges === 1 ? 'Charged once, and the page does not know it' : 'The outcome is not known']
}

/** One sentence about why it came out so. */
function whyOf(order: Order, charges: number): string | null {
  const { paying, ended, way, entries } = order
  const attempts = entries.filter((entry) => entry.kind === 'attempt')
  const sent = attempts.filter(({ code }) => code !== 'offline').length
  if (charges > 1) return 'Each try had a key of its own, so the server took each for another payment.'
  if (paying || ended !== 'paid' || way === 'fresh') return null
  if (sent > 1)
    return 'Every attempt carried the same key, so the server knew the payment and did not make another one.'
  if (attempts.length > 1) return 'What was not sent cannot charge. The first request that was sent paid.'
  return 'One request, one answer.'
}

export function showTimeline(order: Order): void {
  const keys = keysOf(order)
  const now = order.begunAt === null ? 0 : Date.now() - order.begunAt
  const ends = order.entries.map((entry) => (entry.kind === 'note' ? entry.atMs : (entry.endMs ?? now)))
  const scale = Math.max(SCALE_MIN_MS, ...ends)
  const lines = order.entries.map((entry) => lineOf(entry, keys, scale, now))
  const empty = make('li', { class: 'empty' }, 'Each attempt appears here, with its key and its answer.')
  byId('timeline').replaceChildren(...(lines.length > 0 ? lines : [empty]))
}

function lineOf(entry: Entry, keys: readonly string[], scale: number, now: number): HTMLElement {
  if (entry.kind === 'note') return make('li', { class: 'note' }, make('p', {}, entry.text))
  const [state, answer] = answerOf(entry)
  const bar = make('span', { class: 'bar' })
  // By the object model: the page's policy allows no style in markup.
  bar.style.left = `${(100 * entry.beginMs) / scale}%`
  bar.style.width = `${(100 * Math.max(0, (entry.endMs ?? now) - entry.beginMs)) / scale}%`
  const ms = (entry.endMs ?? now) - entry.beginMs
  return make(
    'li',
    { class: 'attempt', 'data-state': state },
    make(
      'p',
      {},
      make('b', {}, `Attempt ${entry.number}`),
      make(
        'code',
        { class: 'key', 'data-key': `${keys.indexOf(entry.key) % 4}`, title: entry.key },
        `key ${entry.key.slice(0, 8)}`,
      ),
      make('span', { class: 'answer' }, answer),
      make('span', { class: 'ms' }, seconds(ms)),
    ),
    make('div', { class: 'lane', 'aria-hidden': 'true' }, bar),
  )
}

function answerOf({ endMs, status, code, replayed }: AttemptEntry): [state: string, answer: string] {
  if (endMs === null) return ['busy', 'waiting for the answer']
  if (code === 'offline') return ['off', 'offline, nothing was sent']
  if (code === 'timeout') return ['lost', 'no answer in time']
  if (code === 'reloaded') return ['lost', 'the page was gone']
  if (status === null) return ['lost', 'no answer, the connection broke']
  if (status === 201) return ['good', replayed ? '201 paid, the stored answer' : '201 paid']
  if (status === 402) return ['off', replayed ? '402 declined, the stored answer' : '402 declined']
  if (status === 502) return ['lost', '502 the server died']
  if (code === 'in_progress') return ['busy', '409 the first attempt is at work']
  return ['lost', `${status} ${code ?? ''}`.trim()]
}

export function showBooks(order: Order, books: Books): void {
  const { rows, requests } = books
  const place = byId('books')
  if (rows.length === 0) {
    const text = order.begunAt === null ? 'Every charge is a row here.' : 'No row for this order.'
    return void place.replaceChildren(make('p', { class: 'empty' }, text))
  }
  const head = ['Row', 'What', 'Amount', 'Payment', 'At'].map((text) => make('th', { scope: 'col' }, text))
  const lines = rows.map(({ kind, payment, amount, currency, at }, i) =>
    make(
      'tr',
      { 'data-kind': kind },
      ...[`${i + 1}`, kind, euro(amount, currency), payment, at.slice(11, 23)].map((text) =>
        make('td', {}, text),
      ),
    ),
  )
  const asked = requests.length
  const replayed = requests.filter((outcome) => outcome === 'replayed').length
  const note =
    replayed > 0
      ? `The processor was asked ${times(asked)}, and answered ${times(replayed)} from its memory of the key.`
      : `The processor was asked ${times(asked)}.`
  place.replaceChildren(
    make('table', {}, make('thead', {}, make('tr', {}, ...head)), make('tbody', {}, ...lines)),
    make('p', { class: 'asked' }, note),
  )
}
