import type { WhyWaiting } from 'onlyonce/client'
import { addChoices, byId, euro, make, seconds } from './dom.ts'
import { ABOUT, armStage, FAULTS, strike } from './faults.ts'
import {
  type AttemptEntry,
  ITEMS,
  keepOrder,
  loadOrder,
  METHODS,
  newOrder,
  type Order,
  totalOf,
  WAYS,
} from './order.ts'
import { askAfterLoad, sendOnce, sendWithFreshKeys, type Watcher } from './send.ts'
import { type Books, readBooks, showBooks, showTimeline, showVerdict } from './story.ts'

/** How often the journal is read while a payment is under way. */
const LOOK_MS = 400

let order = loadOrder()
let books: Books = { rows: [], requests: [] }
/** Resolves when what goes wrong is ready. A second tap waits for the same. */
let ready: Promise<void> = Promise.resolve()
let under = 0

const sinceTap = () => (order.begunAt === null ? 0 : Date.now() - order.begunAt)

function note(text: string): void {
  order.entries.push({ kind: 'note', text, atMs: sinceTap() })
  show()
}

const WHY: Readonly<Record<WhyWaiting, string>> = {
  in_progress: 'asks for the outcome',
  no_answer: 'sends the same again',
  refused_for_now: 'sends the same again',
  offline: 'looks again',
  circuit_open: 'lets the server rest',
}

const isOpen = (key: string) => (entry: Order['entries'][number]) =>
  entry.kind === 'attempt' && entry.key === key && entry.endMs === null

const watcher: Watcher = {
  begins(key) {
    const number = order.entries.filter(({ kind }) => kind === 'attempt').length + 1
    const beginMs = sinceTap()
    order.entries.push({
      kind: 'attempt',
      number,
      key,
      beginMs,
      endMs: null,
      status: null,
      code: null,
      replayed: false,
    })
    show()
  },
  ended({ key, status, code, replayed }) {
    // One that was not sent has not begun.
    if (!order.entries.some(isOpen(key))) this.begins(key)
    const entry = order.entries.findLast(isOpen(key)) as AttemptEntry
    Object.assign(entry, { endMs: sinceTap(), status, code, replayed })
    show()
    void look()
  },
  waits(ms, why) {
    const what = order.way === 'onlyonce' ? WHY[why] : 'makes a new key and tries again'
    note(`Waits ${seconds(ms)}, then ${what}.`)
  },
  resumes() {
    note('The key was kept. The same payment goes out under the same key.')
  },
}

async function tap(): Promise<void> {
  if (order.ended === 'paid') return startOver()
  if (order.paying) {
    note(
      order.way === 'onlyonce'
        ? 'Second tap: it joins the payment under way. Nothing more is sent.'
        : 'Second tap: it begins another payment.',
    )
  } else {
    order.begunAt ??= Date.now()
    order.paying = true
    order.ended = null
    if (order.fault === 'server_killed') note('A server is started, to be killed.')
    // A browser that is really offline cannot say what shall go wrong, and needs nothing more.
    ready = navigator.onLine ? armStage(order.fault) : Promise.resolve()
    ready.then(
      () => {
        if (order.entries.length <= 1) order.begunAt = Date.now()
        strike(order.fault, () => void tap())
      },
      () => {},
    )
  }
  await pay()
}

async function pay(): Promise<void> {
  under += 1
  show()
  try {
    await ready
    const send = order.way === 'onlyonce' ? sendOnce : sendWithFreshKeys
    const status = await send(order, watcher)
    order.ended = status === 201 ? 'paid' : status === 402 ? 'declined' : 'failed'
  } catch (error) {
    const { name, message } = error as Error
    order.ended = name === 'OutcomeUnknown' ? 'unknown' : name === 'Executed' ? 'paid' : 'failed'
    note(message)
  } finally {
    under -= 1
    if (under === 0) order.paying = false
    await look()
    show()
  }
}

async function look(): Promise<void> {
  const asked = order
  const found = await readBooks(order).catch(() => null)
  if (found === null || asked !== order) return
  books = found
  show()
}

/** After a load in the middle of a payment: the key is still there, and the page sends what it had sent. */
async function goOn(): Promise<void> {
  for (const entry of order.entries) {
    if (entry.kind === 'attempt' && entry.endMs === null)
      Object.assign(entry, { endMs: sinceTap(), code: 'reloaded' })
  }
  note('The page was reloaded.')
  if (order.way === 'onlyonce') {
    const unsettled = await askAfterLoad(order).catch(() => null)
    if (unsettled?.status)
      note(`A key is open. The server says: ${unsettled.status.state.replace('_', ' ')}.`)
  }
  await pay()
}

function startOver(): void {
  order = newOrder(order)
  books = { rows: [], requests: [] }
  show()
}

function showCart(): void {
  const locked = order.paying || order.ended === 'paid'
  const step = (id: (typeof ITEMS)[number]['id'], by: number, label: string) => {
    const button = make(
      'button',
      { type: 'button', 'aria-label': label, 'data-focus': `${id}${by}` },
      by < 0 ? '−' : '+',
    )
    button.disabled = locked || order.counts[id] + by < 1 || order.counts[id] + by > 9
    button.addEventListener('click', () => {
      order.counts[id] += by
      show()
    })
    return button
  }
  const focused = document.activeElement?.getAttribute('data-focus')
  byId('cart').replaceChildren(
    ...ITEMS.map(({ id, name, about, cents }) =>
      make(
        'li',
        {},
        make('span', { class: 'item' }, make('b', {}, name), make('small', {}, about)),
        make(
          'span',
          { class: 'count' },
          step(id, -1, `One ${name} less`),
          make('span', {}, `${order.counts[id]}`),
          step(id, 1, `One ${name} more`),
        ),
        make('span', { class: 'price' }, euro(order.counts[id] * cents)),
      ),
    ),
  )
  // The button that was pressed was made anew.
  if (focused) document.querySelector<HTMLElement>(`[data-focus="${focused}"]`)?.focus()
}

function show(): void {
  keepOrder(order)
  showCart()
  const total = euro(totalOf(order))
  byId('total').textContent = total
  byId('order').textContent = order.id
  byId('about').textContent = ABOUT[order.fault]
  const button = byId('pay')
  button.textContent =
    order.ended === 'paid' ? 'New order' : order.paying ? `Paying ${total} …` : `Pay ${total}`
  button.classList.toggle('busy', order.paying)
  showVerdict(order, books)
  showTimeline(order)
  showBooks(order, books)
}

addChoices(byId('faults'), 'fault', FAULTS, order.fault, (fault) => {
  order.fault = fault
  show()
})
addChoices(byId('ways'), 'way', WAYS, order.way, (way) => {
  order.way = way
  show()
})
addChoices(byId('methods'), 'method', METHODS, order.method, (method) => {
  order.method = method
  show()
})
byId('pay').addEventListener('click', () => void tap())
setInterval(() => {
  if (!order.paying) return
  showTimeline(order)
}, 100)
setInterval(() => {
  if (order.paying) void look()
}, LOOK_MS)
show()
void look()
if (order.paying) void goOn()
