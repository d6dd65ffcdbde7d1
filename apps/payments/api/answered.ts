/** The handler of a route with a durable operation. Never run: the operation answers in its place. */
export async function answeredByOperation(): Promise<never> {
  throw new Error('An operation has let its handler run.')
}
