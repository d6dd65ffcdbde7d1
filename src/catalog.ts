import { OnlyonceError } from './errors.ts'
import type { Operation } from './protect/operation.ts'

type AnyOperation = Operation<unknown, unknown>

/** The operations that a process knows, by name and version. Versions live side by side. */
export class Catalog {
  readonly #known = new Map<string, AnyOperation>()

  constructor(operations: readonly Operation<never, unknown>[]) {
    for (const operation of operations) this.add(operation as AnyOperation)
  }

  add(operation: AnyOperation): void {
    if (typeof operation?.run !== 'function') {
      throw new OnlyonceError('option_invalid', { detail: 'Pass operations that operation() has made.' })
    }
    const address = addressOf(operation.name, operation.version)
    const known = this.#known.get(address)
    if (known === operation) return
    if (known !== undefined) {
      const detail = `There are two operations ${operation.name} of version ${operation.version}. Give one of them another version.`
      throw new OnlyonceError('option_invalid', { detail })
    }
    this.#known.set(address, operation)
  }

  get all(): readonly AnyOperation[] {
    return [...this.#known.values()]
  }

  readonly find = (name: string, version: string): AnyOperation | null =>
    this.#known.get(addressOf(name, version)) ?? null
}

/** No version holds an @. */
function addressOf(name: string, version: string): string {
  return `${name}@${version}`
}
