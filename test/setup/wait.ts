/** Looks again and again, a bounded time, until a fact is there. */
export async function waitUntil(
  what: string,
  isTrue: () => Promise<boolean> | boolean,
  max_ms = 20_000,
): Promise<void> {
  const until = performance.now() + max_ms
  while (performance.now() < until) {
    if (await isTrue()) return
    // Leaves the two processors to those whose progress is awaited.
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  throw new Error(`Waited ${max_ms} ms in vain until: ${what}.`)
}
