/** The limits of webhooks: a part of the one table in limits.ts. */
export const WEBHOOK_LIMITS = {
  /** How old, or how far ahead, a signed webhook may be: the five minutes of Stripe and of Standard Webhooks. */
  webhookToleranceMs: 300_000,
  /** Secrets at once, on either side: the current one, and those that are being rotated out. */
  webhookSecretsMax: 8,
  /** Standard Webhooks wants 24 to 64 bytes; a secret of ours has as many as its signature. */
  webhookSecretBytes: 32,
  /** How long a secret that was rotated out may go on signing. */
  webhookSecretKeptMaxMs: 30 * 24 * 3_600_000,
  /** Endpoints of one account: every event may become a delivery to each. */
  webhookEndpointsMax: 50,
  webhookTypesMax: 100,
  webhookUrlLengthMax: 2_048,
  /** How long one delivery may take, resolution of the name included, until its status is there. */
  webhookTimeoutMs: 15_000,
  /** Interim answers (1xx) before the real one: a few are usual, and a flood of them would keep a process busy. */
  webhookInterimMax: 20,
  /** An address that is refused is told as refused so long after the attempt began, and not sooner. */
  webhookRefusedAfterMs: 1_000,
  /** How long one server of names is waited for, and how often it is asked. */
  webhookDnsTimeoutMs: 3_000,
  webhookDnsTries: 2,
  /** For how long a delivery is taken beyond its timeout: time to say how it ended. */
  webhookLeaseMarginMs: 30_000,
  /** Deliveries under way in one process, and those among them to one endpoint: one that hangs takes a few places. */
  webhooksAtOnce: 64,
  webhooksPerEndpoint: 4,
  /** The pauses between the attempts of a delivery, with jitter on top: a little more than three days in all. */
  webhookRetryAfterMs: [
    5_000, 60_000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000, 50_400_000, 72_000_000, 86_400_000,
  ],
  /** The share of a pause that jitter may add. */
  webhookJitter: 0.1,
  /** How long messages, and what became of them, are kept: so far back they can be replayed. */
  webhookRetentionMs: 30 * 24 * 3_600_000,
  /** Messages removed at once: with each go its deliveries and their attempts. */
  webhookCleanMax: 200,
  /** Messages of a range that are replayed in one transaction, and in one call. */
  webhookReplayBatchMax: 500,
  webhookReplayMax: 10_000,
} as const
