/** Every bound of the service, in one place. Those of the library are in its own table. */
export const LIMITS = {
  /** A payment of the same payer, amount and reference within this time is pointed out. */
  duplicate_intent_minutes: 10,
  /** How far clocks of processes may be from that of the database: ids are searched so much beyond a time. */
  clock_difference_ms: 24 * 3_600_000,
  /** Payments that one run of a worker takes. */
  worker_batch_max: 100,
  /** How long a payment may be unsettled before a worker asks what became of it. */
  unsettled_after_seconds: 60,
  unsettled_look_every_ms: 15_000,
  /** How long a reservation is left alone before a worker asks whether anybody can still come back to it. */
  reservation_after_seconds: 24 * 3_600,
  reservation_look_every_ms: 300_000,
  /** A processor that did not let go of a payment is asked again after this. */
  expiry_retry_hours: 24,
  /** An event loop that is later than this has too much to do: new work is refused, and replays are served. */
  overload_lag_max_ms: 250,
  /** Rules of one velocity limit. */
  velocity_rules_max: 5,
} as const
