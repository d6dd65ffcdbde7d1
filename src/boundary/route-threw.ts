/**
 * A function of the route has thrown before anything was claimed. That goes to the framework, whatever it is: an error of ours
 * would be answered as a fact about the key, of which the function knows nothing.
 */
export class RouteThrew extends Error {
  readonly thrown: unknown

  constructor(thrown: unknown) {
    super('A function of the route threw.')
    this.thrown = thrown
  }
}
