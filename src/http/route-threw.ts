/**
 * A function of the route has thrown before anything was claimed. The framework is given it, an error of ours too: that one
 * would be answered as a fact about the key, of which the function knows nothing.
 */
export class RouteThrew extends Error {
  readonly thrown: unknown

  constructor(thrown: unknown) {
    super('A function of the route threw.')
    this.thrown = thrown
  }
}
