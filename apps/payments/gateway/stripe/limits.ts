/** Every bound of the adapter to Stripe, in one place. */
export const STRIPE_LIMITS = {
  /** Where the caller says nothing. Below two thirds of the library's lease. */
  timeoutMs: 10_000,
  /**
   * The adapter gives up this much earlier than the library does, so that it is the one who tells what it saw: a request
   * that never left is not executed, while one that the library stops waiting for is in doubt.
   */
  timeoutMarginMs: 250,
  /** Stripe keeps keys for at least 24 hours. An hour less, for clocks and for calls that are still on their way. */
  keyLifetimeMs: 23 * 60 * 60 * 1_000,
  /** Its search is behind by up to a minute, and by up to an hour when it has trouble, as its documentation says. */
  visibleWithinMs: 65 * 60 * 1_000,
  /** Connections at once. Who waits for one has sent nothing. */
  socketsMax: 256,
  socketsIdleMax: 32,
  /** Shorter than what servers allow, so that seldom a request meets a connection that is just being closed. */
  socketIdleMs: 20_000,
  /** A page of a hundred objects with all that is expanded in them stays far below. */
  answerMaxBytes: 8 * 1024 ** 2,
  pageLength: 100,
  /** A payment has far fewer refunds. */
  refundPagesMax: 100,
  /** Ten million objects in one range of a reconciliation. */
  movementPagesMax: 100_000,
  messageLengthMax: 500,
  /** Where Stripe does not say until when it holds the money: what it promises for cards. */
  holdMs: 7 * 24 * 60 * 60 * 1_000,
  /** Extended authorizations are held for up to 30 days; a day more, for clocks. */
  holdMaxMs: 31 * 24 * 60 * 60 * 1_000,
} as const
