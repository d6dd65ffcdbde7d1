/**
 * Where keys are kept. `sessionStorage`, `localStorage` and React Native's `AsyncStorage` have this shape. Only a key, a digest of the payload and
 * a state are stored, never the payload.
 */
export interface KeyStorage {
  getItem(name: string): string | null | Promise<string | null>
  setItem(name: string, value: string): unknown
  removeItem(name: string): unknown
}

/**
 * Keeps keys for as long as the page lives: a second click finds them, a reload does not.
 *
 * @example
 * const checkout = pendingAction('checkout', { storage: memoryStorage(), user })
 */
export function memoryStorage(): KeyStorage {
  const items = new Map<string, string>()
  return {
    getItem: (name) => items.get(name) ?? null,
    setItem: (name, value) => items.set(name, value),
    removeItem: (name) => items.delete(name),
  }
}

const MEMORY = /* @__PURE__ */ memoryStorage()

/** The session's storage. A page whose storage is blocked has memory alone. */
export function usualStorage(): KeyStorage {
  try {
    return (globalThis as { sessionStorage?: KeyStorage }).sessionStorage ?? MEMORY
  } catch {
    return MEMORY
  }
}

/** As much of IndexedDB as is used here: the types of browsers are not there in Node.js. */
interface Asked<T> {
  readonly result: T
  readonly error: unknown
  onsuccess: () => void
  onerror: () => void
  onupgradeneeded: () => void
}
interface Store {
  get(name: string): Asked<string | undefined>
  put(value: string, name: string): Asked<unknown>
  delete(name: string): Asked<undefined>
}
interface Database {
  createObjectStore(name: string): unknown
  close(): void
  transaction(
    store: string,
    mode: string,
    options: object,
  ): {
    readonly error: unknown
    objectStore(name: string): Store
    oncomplete: () => void
    onabort: () => void
  }
}

/**
 * Keeps keys in IndexedDB, which web workers have too. A write is on the disk when it resolves.
 *
 * @example
 * const checkout = pendingAction('checkout', { storage: indexedDbStorage(), user })
 */
export function indexedDbStorage(database = 'onlyonce'): KeyStorage {
  const run = <T>(work: (store: Store) => Asked<T>) =>
    new Promise<T>((resolve, reject) => {
      const { indexedDB } = globalThis as unknown as {
        indexedDB: { open(name: string, version: number): Asked<Database> }
      }
      const opening = indexedDB.open(database, 1)
      opening.onupgradeneeded = () => opening.result.createObjectStore('keys')
      opening.onerror = () => reject(opening.error)
      opening.onsuccess = () => {
        const opened = opening.result
        const transaction = opened.transaction('keys', 'readwrite', { durability: 'strict' })
        const asked = work(transaction.objectStore('keys'))
        transaction.oncomplete = () => {
          opened.close()
          resolve(asked.result)
        }
        transaction.onabort = () => {
          opened.close()
          reject(transaction.error)
        }
      }
    })
  return {
    getItem: async (name) => (await run((store) => store.get(name))) ?? null,
    setItem: (name, value) => run((store) => store.put(value, name)),
    removeItem: (name) => run((store) => store.delete(name)),
  }
}
