/** The limits of webhooks: a part of the one table in limits.ts. */
export const WEBHOOK_LIMITS = {
  /** How old, or how far ahead, a signed webhook may be: the five minutes of Stripe and of Standard Webhooks. */
  webhook_tolerance_ms: 300_000,
  /** Secrets at once, on either side: the current one, and those that are being rotated out. */
  webhook_secrets_max: 8,
  /** Standard Webhooks wants 24 to 64 bytes; a secret of ours has as many as its signature. */
  webhook_secret_bytes: 32,
  /** How long a secret that was rotated out may go on signing. */
  webhook_secret_kept_max_ms: 30 * 24 * 3_600_000,
  /** Endpoints of one account: every event may become a delivery to each. */
  webhook_endpoints_max: 50,
  webhook_types_max: 100,
  webhook_url_length_max: 2_048,
  /** How long one delivery may take, resolution of the name included, until its status is there. */
  webhook_timeout_ms: 15_000,
  /** Interim answers (1xx) before the real one: a few are usual, and a flood of them would keep a process busy. */
  webhook_interim_max: 20,
  /** An address that is refused is told as refused so long after the attempt began, and not sooner. */
  webhook_refused_after_ms: 1_000,
  /** How long one server of names is waited for, and how often it is asked. */
  webhook_dns_timeout_ms: 3_000,
  webhook_dns_tries: 2,
  /** For how long a delivery is taken beyond its timeout: time to say how it ended. */
  webhook_lease_margin_ms: 30_000,
  /** Deliveries under way in one process, and those among them to one endpoint: one that hangs takes a few places. */
  webhooks_at_once: 64,
  webhooks_per_endpoint: 4,
  /** The pauses between the attempts of a delivery, with jitter on top: a little more than three days in all. */
  webhook_retry_after_ms: [
    5_000, 60_000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000, 50_400_000, 72_000_000, 86_400_000,
  ],
  /** The share of a pause that jitter may add. */
  webhook_jitter: 0.1,
  /** How long messages, and what became of them, are kept: so far back they can be replayed. */
  webhook_retention_ms: 30 * 24 * 3_600_000,
  /** Messages removed at once: with each go its deliveries and their attempts. */
  webhook_clean_max: 200,
  /** Messages of a range that are replayed in one transaction, and in one call. */
  webhook_replay_batch_max: 500,
  webhook_replay_max: 10_000,
} as const
