/** The monotonic clock, for how long something took. When something was is for the store to say. */
export const monotonicMs = (): number => performance.now()
