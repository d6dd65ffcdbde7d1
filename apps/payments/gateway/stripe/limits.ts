/** Every bound of the adapter to Stripe, in one place. */
export const STRIPE_LIMITS = {
  /** Where the caller says nothing. Below two thirds of the library's lease. */
  timeout_ms: 10_000,
  /**
   * The adapter gives up this much earlier than the library does, so that it is the one who tells what it saw: a request
   * that never left is not executed, while one that the library stops waiting for is in doubt.
   */
  timeout_margin_ms: 250,
  /** Stripe keeps keys for at least 24 hours. An hour less, for clocks and for calls that are still on their way. */
  key_lifetime_ms: 23 * 60 * 60 * 1_000,
  /** Its search is behind by up to a minute, and by up to an hour when it has trouble, as its documentation says. */
  settle_ms: 65 * 60 * 1_000,
  /** Connections at once. Who waits for one has sent nothing. */
  sockets_max: 256,
  sockets_idle_max: 32,
  /** Shorter than what servers allow, so that seldom a request meets a connection that is just being closed. */
  socket_idle_ms: 20_000,
  /** A page of a hundred objects with all that is expanded in them stays far below. */
  answer_max_bytes: 8 * 1024 ** 2,
  page_length: 100,
  /** A payment has far fewer refunds. */
  refund_pages_max: 100,
  /** Ten million objects in one range of a reconciliation. */
  movement_pages_max: 100_000,
  message_length_max: 500,
  /** Where Stripe does not say until when it holds the money: what it promises for cards. */
  hold_ms: 7 * 24 * 60 * 60 * 1_000,
  /** Extended authorizations are held for up to 30 days; a day more, for clocks. */
  hold_max_ms: 31 * 24 * 60 * 60 * 1_000,
} as const
