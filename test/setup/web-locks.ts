/** Web Locks as far as the client uses them, for tests: Node.js 20 has none. Closing a tab frees what it holds, as in a browser. */
type Held = (lock: object | null) => Promise<void> | undefined

interface Waiter {
  readonly tab: string
  readonly start: () => void
}

export function makeLocks() {
  const held = new Map<string, { tab: string }>()
  const queues = new Map<string, Waiter[]>()

  function next(name: string): void {
    held.delete(name)
    queues.get(name)?.shift()?.start()
  }

  function grant(name: string, tab: string, callback: Held): Promise<void> {
    const lock = { tab }
    held.set(name, lock)
    return Promise.resolve(callback(lock)).then(() => {
      if (held.get(name) === lock) next(name)
    })
  }

  function requestFor(
    tab: string,
    name: string,
    options: { ifAvailable?: boolean },
    callback: Held,
  ): Promise<unknown> {
    if (!held.has(name)) return grant(name, tab, callback)
    if (options.ifAvailable) return Promise.resolve(callback(null))
    return new Promise((resolve) => {
      const start = () => resolve(grant(name, tab, callback))
      queues.set(name, [...(queues.get(name) ?? []), { tab, start }])
    })
  }

  return {
    request: (name: string, options: object, callback: Held) => requestFor('', name, options, callback),
    /** The locks as one tab sees them. */
    of: (tab: string) => ({
      request: (name: string, options: object, callback: Held) => requestFor(tab, name, options, callback),
    }),
    /** The tab is closed, or has crashed. */
    close(tab: string): void {
      for (const [name, queue] of queues)
        queues.set(
          name,
          queue.filter((waiter) => waiter.tab !== tab),
        )
      for (const [name, lock] of [...held]) if (lock.tab === tab) next(name)
    },
  }
}
