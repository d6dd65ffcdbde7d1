/** Looks again and again, a bounded time, until a fact is there. */
export async function waitUntil(
  what: string,
  isTrue: () => Promise<boolean> | boolean,
  maxMs = 20_000,
): Promise<void> {
  const until = performance.now() + maxMs
  while (performance.now() < until) {
    if (await isTrue()) return
    // Leaves the two processors to those whose progress is awaited.
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  throw new Error(`Waited ${maxMs} ms in vain until: ${what}.`)
}
