import { WEBHOOK_LIMITS } from './limits-of-webhooks.ts'

/**
 * Every limit of the library, its default and the reason for it. Options change them; nothing else does.
 * Units stand last in the name.
 *
 * @example
 * const day = LIMITS.retentionMs // 86_400_000
 */
export const LIMITS = {
  /** Operations that are warned about once each; after so many no more warnings help. */
  warnedOperationsMax: 1_000,
  /** Stripe's and the IETF draft's practical bound; also keeps index entries small. */
  keyLengthMax: 255,
  /** Shorter keys are counters or typed by hand, and collide. A UUID has 36 characters. */
  keyLengthMin: 8,
  /** Accounts and operations are names, not documents. */
  nameLengthMax: 255,
  /** How many identifiers a business key may be made of. */
  businessKeyPartsMax: 16,
  /** Time enough to fill in a form and send it; a key that leaked is soon worth nothing. */
  issuedKeyLifetimeMs: 3_600_000,
  /** No form stays open longer. An expiry further ahead is not ours, or a clock is wrong. */
  issuedKeyLifetimeMaxMs: 7 * 24 * 3_600_000,
  /** How far the clocks of two processes may be apart. Synchronised ones differ by milliseconds. */
  issuedKeySkewMs: 60_000,

  /** A protected request body is read whole to fingerprint it. */
  bodySizeMaxBytes: 1_048_576,
  /** Far more than a payment request needs; canonicalize was seen to overflow the stack near 2,400 levels. */
  jsonDepthMax: 64,
  /** Members and elements in all; bounds the time that canonicalization takes. */
  jsonMembersMax: 10_000,
  /** Fields that may be included in or excluded from a fingerprint. */
  pointersMax: 64,
  /** HMAC-SHA-256 wants as many bits of key as it has of output. */
  secretSizeMinBytes: 32,

  /** Stored replies are read back by every retry. */
  replySizeMaxBytes: 1_048_576,
  /** Replayed replies that a process keeps for the next retry: enough for a storm, little for a process. */
  recentRepliesMaxBytes: 16_777_216,
  /** How long they are kept: a record that was removed is forgotten here a moment later too. */
  recentReplyMaxMs: 10_000,
  /** What an error leaves in the history: enough to recognise it, too little to leak a body. */
  errorMessageLengthMax: 300,
  /** Codes and names of errors are words; a longer text was not meant as one. */
  errorCodeLengthMax: 100,

  /** Stripe's v1 retention; longer than any sensible client retries. */
  retentionMs: 24 * 3_600_000,
  /** How long an owner is presumed alive without a sign of life. */
  leaseMs: 30_000,

  /** Heartbeats end here: a promise that never settles does not own a key for ever. */
  inProgressMaxMs: 300_000,
  /** How long a call to the outside may take, where its step does not say so. Far less than a lease. */
  callTimeoutMs: 10_000,
  /** How often one attempt repeats a call that was not executed, or whose outcome is in doubt. */
  callsMax: 3,
  /** How long the other side remembers a key, where a step does not say so: Stripe's day. */
  callKeyLifetimeMs: 24 * 3_600_000,
  /** How long a call that was sent may stay unseen by the other side's lookup. */
  callVisibleWithinMs: 120_000,
  /** Backing off between calls: the other side is in trouble, and others call it too. */
  callBackoffMs: 100,
  /** Calls of one operation that operators may declare void. More of them are a fault of the other side, to be settled there. */
  voidCallsMax: 16,
  /** Steps of one operation, undone ones included. More is a loop. */
  stepsMax: 200,
  /** The result of one step: an id and what the next step needs, not a document. */
  stepResultMaxBytes: 65_536,
  /** All results of an operation together; they are written again with every step. */
  progressMaxBytes: 1_048_576,

  /** How long a claim is repeated when the store is away: a caller waits for it. */
  claimMaxMs: 5_000,
  /** How long a claim of ours that executed nothing is tried to be given back, how many may wait for it, and how many go at once. */
  giveBackMaxMs: 600_000,
  giveBacksMax: 10_000,
  giveBacksAtOnce: 8,
  /** How long a result is tried to be saved when the store is away: the work is done, and must not be lost. */
  saveMaxMs: 30_000,

  /** Longest wait for another's open transaction on the same key or row before it counts as in progress. */
  lockWaitMaxMs: 3_000,
  /** The same when all but one connection wait already: the last one must stay free for bystanders. */
  lockWaitLastMs: 10,
  /** The same for a group of claims or completions: a member that needs longer goes on alone. */
  lockWaitGroupMs: 10,
  /** How long the answer to a group may take: it waits for no lock, so a commit is all that it waits for. */
  groupMaxMs: 2_000,
  /** Claims and completions in one commit: far more than wait at once where a commit takes a millisecond. */
  groupMax: 128,
  /** Replies that are larger are written alone: a group is held in memory, twice, as text. */
  groupReplyMaxBytes: 16_384,
  /** A transaction whose owner says nothing for this long is rolled back by the server, so its key is free. */
  idleInTransactionMaxMs: 10_000,
  /** One attempt of a transaction, from its first statement to the answer of COMMIT. */
  transactionMaxMs: 30_000,
  /** All attempts of one call together. */
  deadlineMs: 60_000,
  /** Attempts after serialization failures, deadlocks and lost connections. */
  attemptsMax: 12,
  /** Backing off between attempts: full jitter between these two. */
  backoffMinMs: 5,
  backoffMaxMs: 1_000,
  /** How long to go on asking whether a COMMIT whose answer was lost took effect. */
  settleMaxMs: 30_000,
  /** A lookup or another short statement of our own. */
  statementMaxMs: 10_000,
  /** Waiting for a connection. */
  connectionWaitMaxMs: 10_000,
  /** Callers that wait for a connection, or for a flight with the same key; more are refused at once. */
  waitingMax: 10_000,
  /** Keys in one batched lookup. */
  lookBatchMax: 128,
  /** How long a lookup may be put off while others are ready to run before it. */
  lookDelayMaxMs: 5,
  /** A batch without an answer for so long lets the next one go: its connection may be dead. */
  batchWaitMaxMs: 25,
  /** A statement of the work is prepared when it has come so often: twice may be chance. */
  prepareAfter: 3,
  /** Texts that are watched, and texts that are prepared; each of the latter takes memory in every session. */
  statementsSeenMax: 1_000,
  statementsPreparedMax: 100,
  /** Clients that an ORM may have of one transaction. They are objects, not connections: all of them send on one. */
  ormClientsMax: 100,
  /** A statement that waits for a nested transaction is refused when that has sent nothing for so long: it may be what the nested transaction waits for. */
  nestedSilenceMaxMs: 1_000,
  /** Statements that wait for a nested transaction. */
  nestedWaitingMax: 1_000,
  /** Times that a claim looks again when a race gave it no row. */
  claimLooksMax: 8,
  /** Attempts that explain() shows; the newest win. */
  historyMax: 100,
  /** How long close() lets running work finish. */
  closeMaxMs: 30_000,
  /** How long close() then waits for the connections of its own pool. */
  poolEndMaxMs: 1_000,
  /** What a client that met another's attempt is told to wait at least: where nothing is known, an answer is near. */
  retryAfterMs: 1_000,
  /** And at most: evidence or an operator may settle it before the next look. */
  retryAfterMaxMs: 3_600_000,
  /** An attempt that began so long ago and is not finished has been forgotten by everybody. */
  stuckAfterMs: 3_600_000,
  /** A store that is away fails every call: how often that is told anew. */
  storeAwayAgainMs: 30_000,
  /** A store that did not fail for so long was well: the next failure is a new outage, and is told at once. */
  storeSteadyMs: 10_000,
  /** A store that failed shortly before is away again when it gives no answer for so long. */
  storeAwaySureMs: 1_000,
  /** How often stuck records are counted, where anybody observes. */
  stuckCheckEveryMs: 60_000,
  /** A timer of Node.js that is set to more than this fires at once. */
  timerMaxMs: 2_147_483_647,
  /** Events in one batch of a lane: the row that lists them stays small, and a cursor moves seldom. */
  outboxBatchMax: 500,
  /** Lanes that a relay takes at once, of sixteen: others have something to do too. */
  lanesTakenMax: 8,
  /** Events that a publisher is given at once. */
  publishMax: 1_000,
  /** How long one publish may take. Less than the lease: who is late is told to stop, not robbed. */
  publishTimeoutMs: 10_000,
  /** How long a relay is presumed alive without having ended its round. */
  relayLeaseMs: 30_000,
  /** Refusals by a destination that lives, after which an event waits for an operator. */
  eventTriesMax: 10,
  /** Backing off from a destination: it is asked soon again, and never less than once in a minute. */
  relayBackoffMinMs: 100,
  relayBackoffMaxMs: 60_000,
  /** How long one destination, or a job, may keep a relay from the others. */
  relayPatienceMs: 250,
  /** How often the lag of destinations is told, where anybody observes. */
  lagEveryMs: 10_000,
  /** Jobs that a relay runs at once. */
  jobsAtOnce: 20,
  /** How long one job may take. */
  jobTimeoutMs: 60_000,
  /** For how long a job is taken beyond its timeout: time to stop, and to say how it ended. */
  jobLeaseMarginMs: 30_000,
  /** With the backing off below, most of a day. */
  jobAttemptsMax: 30,
  jobBackoffMinMs: 1_000,
  jobBackoffMaxMs: 3_600_000,
  /** How long delivered events, and done jobs that have a key, are kept. */
  deliveredRetentionMs: 24 * 3_600_000,
  /** How long messages are known: longer than any sender repeats one. Duplicates a week late have been seen. */
  inboxRetentionMs: 30 * 24 * 3_600_000,
  /** How often they are removed, and how much of it at once: short transactions. */
  cleanEveryMs: 60_000,
  cleanBatchesMax: 16,
  cleanRowsMax: 1_000,
  /** Posts to one address at once. */
  httpPostsAtOnce: 8,
  /** The retry rate is that of the last minute, counted in stretches of a second. */
  retryRateWindowMs: 60_000,
  retryRateSlots: 60,
  /** Hexadecimal characters of a key's digest in logs and spans (chance makes no two equal), and values of one label of the metrics. */
  keyDigestLength: 12,
  labelValuesMax: 500,

  /** An operation that so many owners have left unfinished is not tried again: it may be what ended them. */
  ownersMax: 50,
  /** How long the owner of an operation may be silent, after its lease, before a worker goes on with it. */
  graceMs: 30_000,
  /**
   * When an outcome in doubt is looked at, counted from the look before; then it is parked. Most doubts end within seconds, and a
   * client waits meanwhile. Each pause is two to six times the last; together 31 hours, longer than keys are remembered.
   */
  reconcileAfterMs: [2_000, 5_000, 15_000, 45_000, 120_000, 600_000, 3_600_000, 21_600_000, 86_400_000],
  /** How long `recover` may take to answer, and for how long its look is held, in case its process dies meanwhile. */
  recoverMaxMs: 10_000,
  recoverHoldMs: 30_000,
  /** A record that counts on a `recover` which no process has had for so long is parked by any process. */
  recoverOrphanedMs: 3_600_000,
  /** The background loop of every process: how often it looks, what it takes at once, and how it goes on. */
  backgroundEveryMs: 10_000,
  backgroundBatchMax: 20,
  backgroundAtOnce: 4,
  backgroundPruneMax: 200,
  backgroundAgainMs: 1_000,
  backgroundBackoffMaxMs: 300_000,
  /**
   * Operations that wait for a worker: how often the background loop looks, by how much one has to be overdue, for how long it has to stand
   * still after that, and when it is told again. A full batch of calls that all time out takes a worker some ten minutes.
   */
  unattendedCheckEveryMs: 300_000,
  unattendedAfterMs: 900_000,
  unattendedAgainMs: 3_600_000,
  /** Records that a worker takes in one batch, and works on at once. */
  workerBatchMax: 100,
  workerAtOnce: 8,
  /** How often a worker looks where nothing waits for it and it does not say so itself. */
  workerEveryMs: 1_000,
  /** The longest pause of a worker after errors: a store that comes back is soon worked on again. */
  workerBackoffMaxMs: 30_000,
  /** How long stop() waits for batches that run. They are bounded, and nothing is lost if one is not waited for. */
  workerStopMaxMs: 15_000,

  /** A holder that says nothing for longer would be missed before; one that dies keeps others out for so long. */
  lockTtlMaxMs: 3_600_000,
  /** Locks are extended no longer than this by themselves: a promise that never settles does not hold one for ever. */
  lockHoldMaxMs: 300_000,
  /** How long one try for a lock waits for the open transaction of its last holder. */
  lockRowWaitMs: 50,
  /** The longest pause between two tries for a lock: a release is noticed about as late. */
  lockPollMaxMs: 250,

  /** Why an operator decided as they did: a paragraph, and the number of a ticket. */
  whyLengthMax: 1_000,
  /** Records on one page of a list, where no other number is asked for, and the most that can be. */
  listDefault: 50,
  listMax: 500,
  /** Names of operations that are looked through for one key of an account: an index is asked once for each. */
  keyOperationsMax: 10_000,
  /** Other operations with the same key that the story of a key without a record names. */
  nearNamesMax: 5,

  /** How long evidence about calls is kept: far beyond the last look at a call in doubt. */
  evidenceKeptMs: 90 * 24 * 3_600_000,
  /** How long the first evidence about a call keeps later evidence out: after that it may be of an earlier life of the key. */
  evidenceFirstMs: 3_600_000,
  /** How often the reaper looks once nothing is left to remove. No caller waits for it. */
  reapEveryMs: 60_000,
  /** Records in one batch: rows that are locked until its commit, and dead rows for the vacuum. */
  reapBatchMax: 1_000,
  /** A batch that was too slow is halved, down to this. */
  reapBatchMin: 10,
  /** How long one statement of the reaper may take: a caller that comes for a record in the batch waits for it. */
  reapStatementMaxMs: 2_000,
  /** A look over whole tables that a person has asked for, and waits for. */
  surveyMaxMs: 600_000,
  /** Rows that are read at once to be sealed anew: each may hold a reply of a mebibyte. */
  resealPageMax: 100,
  /** Records that are erased in one commit. */
  erasePageMax: 500,
  /** Records past their retention that are counted to tell that no reaper keeps up. */
  overdueCountedMax: 100_000,
  /**
   * Finished records stay this long after their last change, however short their retention: one may be the only proof
   * of what became of a COMMIT whose answer was lost, or keep a late one from taking effect. Ten times what the default
   * bounds of a transaction and of settling come to.
   */
  finishedKeptMinMs: 600_000,

  ...WEBHOOK_LIMITS,

  /** How long a process waits for another one that migrates. */
  migrationWaitMaxMs: 120_000,
  /** The one time that a start reads the records: after a key was taken out of a ring. */
  keyCheckMaxMs: 60_000,

  /** How long a request waits for a limiter: a limit is not worth more than the work behind it. */
  limitWaitMaxMs: 250,
  /** After trouble with a subject its limiter does not ask about it for so long, and so for at most so many subjects at once. */
  limitPauseMs: 1_000,
  limitPausedMax: 10_000,
  /** Points of one window, and takes of it in one statement; together they stay an integer of the database. */
  limitPointsMax: 1_000_000,
  limitBatchMax: 1_000,
  /** No window is longer; what is to be remembered for longer is not a limit of speed. */
  limitWindowMaxMs: 31 * 24 * 3_600_000,
  /** Windows of one subject, each a statement; and the name of a limiter, in front of a digest in a column of 255 characters. */
  limitRulesMax: 8,
  limitNameLengthMax: 64,
  /** How long a full window is known to be full without asking: another process may have given points back. */
  limitFullKeptMs: 100,
  /** Full windows that a process knows of. */
  limitFullMax: 10_000,
  /** Subjects of which a process knows how much of their window is used, for takes that the store does not answer. */
  limitKnownMax: 10_000,
  /** Ended windows that are removed at once, and how often that is repeated: ten thousand new subjects a second are kept up with. */
  limitSweepMax: 10_000,
  limitSweepsMax: 300,
  /** How often it is looked how late the event loop is; its delays are sampled more often. */
  overloadLookEveryMs: 100,
  /** How long a new request may have to wait for a connection. Less than it waits to be counted: limits may share the pool. */
  overloadQueueMaxMs: 200,
  /** A queue is judged after so long; a burst that is served by then is no overload. */
  overloadQueueWatchMs: 500,
  /** No client is told to come back later than this: a stall may end at any moment. */
  overloadRetryAfterMaxMs: 30_000,
  overloadSampleEveryMs: 10,
} as const
