import { OnlyonceError } from '../core/errors.ts'
import { requireList } from '../core/options.ts'
import type { Operation } from '../operation/operation.ts'
import type { VersionsOf } from '../operation/run-operation.ts'

type AnyOperation = Operation<unknown, unknown>

/** The operations that a process knows, by name and version. Versions live side by side. */
export class Catalog {
  readonly #known = new Map<string, Map<string, AnyOperation>>()

  constructor(operations: readonly Operation<never, unknown>[]) {
    requireList('operations', operations)
    for (const operation of operations) this.add(operation as AnyOperation)
  }

  add(operation: AnyOperation): void {
    if (typeof operation?.run !== 'function') {
      throw new OnlyonceError('option_invalid', { detail: 'Pass operations that operation() has made.' })
    }
    const { name, version } = operation
    const versions = this.#known.get(name) ?? new Map<string, AnyOperation>()
    const known = versions.get(version)
    if (known !== undefined && known !== operation) {
      const detail = `There are two operations ${name} of version ${version}. Give one of them another version.`
      throw new OnlyonceError('option_invalid', { detail })
    }
    this.#known.set(name, versions.set(version, operation))
  }

  get all(): readonly AnyOperation[] {
    return [...this.#known.values()].flatMap((versions) => [...versions.values()])
  }

  readonly versionsOf: VersionsOf = (name) => this.#known.get(name) ?? NONE
}

const NONE: ReadonlyMap<string, AnyOperation> = new Map()
