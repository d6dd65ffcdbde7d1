/**
 * Puts properties on an object, and puts back what it had of its own before: other layers (sessions, compression, logs)
 * replace methods of the same response, and must find theirs again.
 */
export class Overrides {
  readonly #on: object
  readonly #before = new Map<string, PropertyDescriptor | undefined>()

  constructor(on: object) {
    this.#on = on
  }

  method(name: string, value: unknown): void {
    this.#define(name, { value, configurable: true, writable: true })
  }

  /** What is assigned meanwhile is forgotten, unless `set` is given. */
  property(name: string, get: () => unknown, set: (value: unknown) => void = () => {}): void {
    this.#define(name, { get, set, configurable: true })
  }

  undo(): void {
    for (const [name, before] of this.#before) {
      if (before === undefined) delete (this.#on as Record<string, unknown>)[name]
      else Object.defineProperty(this.#on, name, before)
    }
    this.#before.clear()
  }

  #define(name: string, descriptor: PropertyDescriptor): void {
    if (!this.#before.has(name)) {
      this.#before.set(name, Object.getOwnPropertyDescriptor(this.#on, name))
    }
    Object.defineProperty(this.#on, name, descriptor)
  }
}
