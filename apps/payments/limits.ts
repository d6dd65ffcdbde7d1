/** Every bound of the service, in one place. Those of the library are in its own table. */
export const LIMITS = {
  /** A payment of the same payer, amount and reference within this time, or longer where keys replay longer, is a duplicate. */
  duplicateWindowMs: 24 * 3_600_000,
  /** Records are removed a little later than their retention says, and clocks are read at different moments. */
  duplicateMarginMs: 3_600_000,
  /** How often one payment looks for earlier ones that are no more in the way, and how many of them it clears away at each look. */
  duplicateLooksMax: 5,
  duplicatesClearedMax: 200,
  /** How far clocks of processes may be from that of the database: ids are searched so much beyond a time. */
  clockDifferenceMs: 24 * 3_600_000,
  /** Payments that one run of a worker takes. */
  workerBatchMax: 100,
  /** How long a payment may be unsettled before a worker asks what became of it. */
  unsettledAfterSeconds: 60,
  unsettledLookEveryMs: 15_000,
  /** How long a request that was not executed keeps what it reserved while nobody else needs it. */
  reservationAfterSeconds: 3_600,
  /** Requests under way of one payment that a request which needs their share looks at. */
  reservationsLookedAtMax: 100,
  reservationLookEveryMs: 300_000,
  /** Payments that one statement, and one request, look at for a payer who is to be forgotten. */
  payerPageMax: 1_000,
  payerPagesMax: 100,
  forgottenLookEveryMs: 300_000,
  /** A processor that did not let go of a payment is asked again after this. */
  expiryRetryHours: 24,
  /** How long a payment waits for its card to be counted. It is refused then, so this is longer than an ordinary stall of a disk. */
  velocityWaitMaxMs: 2_000,
  /** How long a read of the API may take the database; then it is ended there, and answered with 503. */
  readMaxMs: 5_000,
  /** How long a read waits for its answer beyond that, on a link on which nothing comes back and behind a pooler that has no connection. */
  readAnswerMarginMs: 1_000,
  /** How long a request waits for a look at its API key, its account or its payment. */
  lookMaxMs: 5_000,
  /** How long a request waits for a database that has just left another look without an answer. */
  lookAgainWaitMs: 250,
  /** Connections of one process that only read, and the reads of one account that wait for its half of them. */
  readsPoolSize: 6,
  readsWaitingMax: 200,
  /** Requests of one account under way in one process. */
  accountAtOnceMax: 200,
  /** New writes of one account in a day: what it can have us keep. */
  quotaLive: 1_000_000,
  quotaTest: 50_000,
  /** Writes of which one process knows what to give back where they began nothing. Each costs about 300 bytes. */
  triesMax: 10_000,
  /** How long a request that has taken points of a limit is presumed to be under way. Longer than a request is waited for. */
  provisionalMaxMs: 60_000,
  /** When a request may come back that finds no points left, where one under way may give some back. */
  provisionalRetryMs: 1_000,
  /** Connections of one process that only count. Takes of one subject share a statement, so a few serve thousands a second. */
  limitsPoolSize: 4,
  /** What a statement of the limits may take beyond the wait of a request: sweeps of ended windows are longer than takes. */
  limitsStatementMarginMs: 1_000,
  /** Wrong API keys, wrong tokens and unknown paths of one address in a minute. People mistype; five a second are a program. */
  strangersPerMinute: 300,
  /** How often it is logged that limits cannot be counted. */
  limitsTroubleToldEveryMs: 1_000,
  /** An event loop that is later than this has too much to do: new work is refused, and replays are served. */
  overloadLagMaxMs: 250,
  /** A request that would wait longer than this for one connection is too much: a payment waits for some five of them. */
  overloadQueueMaxMs: 200,
  /** A queue that is so many times longer is one that does not move: then replays and reads could not be served either. */
  overloadStalledTimes: 10,
  /**
   * How long after its end a day is compared with the processor's books. At first nearly all is settled; a day later what
   * is unknown has aged; and after a week a processor has let go of whatever was held.
   */
  reconcileAfterHours: [3, 27, 8 * 24 + 3],
  /** Older days that nobody has compared are left to `npm run reconcile`. */
  reconcileDaysBack: 14,
  reconcileLookEveryMs: 600_000,
  /** Days of one call. */
  reconcileDaysMax: 366,
  reconcilePageMax: 1_000,
  /** Of one side, in one day and the time around it: they are in memory. */
  reconcileMovementsMax: 1_000_000,
  /** What both sides' clocks may differ by. */
  reconcileSkewMs: 3_600_000,
  /** A process that reconciles is presumed to live for so long without a word, and is let go on for so long in all. */
  reconcileLockMs: 60_000,
  reconcileHoldMaxMs: 2 * 3_600_000,
  /** How often somebody looks whether balances are worth a checkpoint. */
  checkpointEveryMs: 300_000,
  checkpointLockMs: 60_000,
} as const
