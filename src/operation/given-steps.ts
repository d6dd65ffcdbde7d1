/**
 * The promises of steps that the function of an operation was given. The function may forget to await one. Node ends a process in which a
 * rejection is heard by no code, and so it would end each worker that takes the record over. Here every rejection is heard. One that the
 * function did not listen to is thrown in its place when it ends.
 */
export class GivenSteps {
  readonly #given: { readonly running: Promise<unknown>; readonly given: Given<unknown> }[] = []

  give<T>(running: Promise<T>): Promise<T> {
    const given = new Given<T>((resolve, reject) => {
      running.then(resolve, reject)
    })
    given.keepQuiet()
    this.#given.push({ running, given })
    return given
  }

  /** Waits for all of them, and throws what one was rejected with that the function has not listened to. */
  async throwUnheard(): Promise<void> {
    const ends = await Promise.allSettled(this.#given.map(({ running }) => running))
    const unheard = ends.find((end, i) => end.status === 'rejected' && !this.#given[i]!.given.heard)
    if (unheard?.status === 'rejected') throw unheard.reason
  }
}

/** A promise that knows whether any code listens to it. */
class Given<T> extends Promise<T> {
  heard = false

  /** What follows from it is a promise like any other. */
  static override get [Symbol.species]() {
    return Promise
  }

  // biome-ignore lint/suspicious/noThenProperty: this is a promise, and await calls it.
  override then<A = T, B = never>(
    fulfilled?: ((value: T) => A | PromiseLike<A>) | null,
    rejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.heard = true
    return super.then(fulfilled, rejected)
  }

  keepQuiet(): void {
    super.then(undefined, () => {})
  }
}
