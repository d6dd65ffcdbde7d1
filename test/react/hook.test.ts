import { Window } from 'happy-dom'
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'

/** React wants a document, and is told that it is tested. */
const window = new Window()
beforeAll(() => {
  const { document, navigator } = window
  const names = { window, document, navigator, IS_REACT_ACT_ENVIRONMENT: true }
  for (const [name, value] of Object.entries(names)) vi.stubGlobal(name, value)
})

type ReactModule = typeof import('react')
type Hook = typeof import('../../src/react/index.ts')['useIdempotentAction']

interface Version {
  readonly React: ReactModule
  readonly createRoot: typeof import('react-dom/client')['createRoot']
  readonly useIdempotentAction: Hook
}

const VERSIONS: [string, () => Promise<Version>][] = [
  ['React 18', load18],
  ['React 19', load19],
]

async function load18(): Promise<Version> {
  vi.resetModules()
  const { React, createRoot } = await import('../react18/index.ts')
  vi.doMock('react', () => ({ ...React, default: React }))
  const { useIdempotentAction } = await import('../../src/react/index.ts')
  expect(React.version).toMatch(/^18\./)
  return { React, createRoot, useIdempotentAction }
}

async function load19(): Promise<Version> {
  vi.resetModules()
  vi.doUnmock('react')
  const React = await import('react')
  const { createRoot } = await import('react-dom/client')
  const { useIdempotentAction } = await import('../../src/react/index.ts')
  expect(React.version).toMatch(/^19\./)
  return { React, createRoot, useIdempotentAction }
}

describe.each(VERSIONS)('with %s', (_, load) => {
  let version: Version
  let name: string
  let sent: string[]
  let ends: ((value: unknown) => void)[]
  let flights: Promise<unknown>[]
  const roots: { unmount(): void }[] = []

  beforeEach(async () => {
    version = await load()
    name = `checkout:${crypto.randomUUID()}`
    sent = []
    ends = []
    flights = []
  })
  afterEach(async () => {
    for (const root of roots.splice(0)) await version.React.act(async () => root.unmount())
  })

  /** A component that shows the action, and what it offers. */
  function show(strict: boolean, user: string | null = 'usr_1') {
    const { React, createRoot, useIdempotentAction } = version
    const seen: { action: ReturnType<typeof useIdempotentAction<string, unknown>> | null; states: string[] } =
      {
        action: null,
        states: [],
      }
    const send = async (order: string, { key }: { key: string }) => {
      sent.push(`${order} ${key}`)
      return await new Promise((resolve, reject) => {
        ends.push((value) => (value instanceof Error ? reject(value) : resolve(value)))
      })
    }
    function Pay() {
      const action = useIdempotentAction(name, send, { user })
      seen.action = action
      seen.states.push(action.state)
      return React.createElement('button', null, action.state)
    }
    const element = React.createElement(Pay)
    const container = window.document.createElement('div')
    const root = createRoot(container as unknown as Element)
    roots.push(root)
    const render = () =>
      React.act(async () =>
        root.render(strict ? React.createElement(React.StrictMode, null, element) : element),
      )
    const unmount = () => React.act(async () => root.unmount())
    return { seen, render, unmount, text: () => container.textContent }
  }

  const click = (seen: ReturnType<typeof show>['seen'], ...orders: string[]) =>
    version.React.act(async () => {
      const { run } = seen.action!
      flights.push(...orders.map((order) => run(order)))
    })

  /** Ends what was sent, and waits until the page has heard of it. */
  const settle = (value: unknown) =>
    version.React.act(async () => {
      await vi.waitFor(() => expect(ends.length).toBe(1))
      ends.shift()!(value)
      await Promise.all(flights)
    })

  it.each([false, true])('two clicks of one moment begin one action (Strict Mode: %s)', async (strict) => {
    const { seen, render, text } = show(strict)
    await render()
    expect(text()).toBe('idle')
    await click(seen, 'tea', 'tea', 'coffee')
    expect(text()).toBe('running')
    await settle({ id: 1 })
    expect(text()).toBe('done')
    expect(seen.action!.result).toEqual({ id: 1 })
    expect(sent.length).toBe(1)
    const ended = { state: 'done', result: { id: 1 }, error: undefined }
    expect(await Promise.all(flights)).toEqual([ended, ended, ended])
    await click(seen, 'tea')
    await settle({ id: 2 })
    expect(new Set(sent).size).toBe(2)
  })

  it.each([false, true])('a doubt keeps its key, and is told as one (Strict Mode: %s)', async (strict) => {
    const { OutcomeUnknown, NotExecuted } = await import('../../src/client/index.ts')
    const { seen, render, text } = show(strict)
    await render()
    await click(seen, 'tea')
    await settle(new OutcomeUnknown({ code: 'no_answer' }))
    expect(text()).toBe('unknown')
    expect(seen.action!.error).toBeInstanceOf(OutcomeUnknown)
    await click(seen, 'tea')
    await settle(new NotExecuted({ code: 'offline' }))
    expect(text()).toBe('failed')
    await click(seen, 'tea')
    await settle('paid')
    expect(text()).toBe('done')
    expect(sent.length).toBe(3)
    expect(new Set(sent).size).toBe(1)
  })

  it.each([false, true])(
    'unmounted and mounted again it finds what is under way (Strict Mode: %s)',
    async (strict) => {
      const first = show(strict)
      await first.render()
      await click(first.seen, 'tea')
      await first.unmount()
      const second = show(strict)
      await second.render()
      expect(second.text()).toBe('running')
      await click(second.seen, 'tea')
      await settle('paid')
      expect(second.text()).toBe('done')
      expect(sent.length).toBe(1)
    },
  )

  it('shows an outcome that came while no component was there, once', async () => {
    const first = show(true)
    await first.render()
    await click(first.seen, 'tea')
    await first.unmount()
    await settle('paid')
    const second = show(true)
    await second.render()
    expect([second.text(), second.seen.action!.result]).toEqual(['done', 'paid'])
    await second.unmount()
    const third = show(true)
    await third.render()
    expect(third.text()).toBe('idle')
  })

  it('is shared by components, and not by users', async () => {
    const [one, two, other] = [show(false), show(true), show(false, 'usr_2')]
    for (const { render } of [one, two, other]) await render()
    await click(one.seen, 'tea')
    expect([one.text(), two.text(), other.text()]).toEqual(['running', 'running', 'idle'])
    await settle('paid')
    expect([one.text(), two.text(), other.text()]).toEqual(['done', 'done', 'idle'])
  })

  it('tells a payload that cannot be compared as a failure', async () => {
    const { seen, render, text } = show(false)
    await render()
    await click(seen, new Map() as unknown as string)
    expect(text()).toBe('failed')
    expect(seen.action!.error).toBeInstanceOf(TypeError)
    expect(sent).toEqual([])
  })
})
