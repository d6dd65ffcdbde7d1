import { WEBHOOK_LIMITS } from './limits-of-webhooks.ts'

/**
 * Every limit of the library, its default and the reason for it. Options change them; nothing else does.
 * Units stand last in the name.
 */
export const LIMITS = {
  /** Operations that are warned about once each; after so many no more warnings help. */
  warned_operations_max: 1_000,
  /** Stripe's and the IETF draft's practical bound; also keeps index entries small. */
  key_length_max: 255,
  /** Shorter keys are counters or typed by hand, and collide. A UUID has 36 characters. */
  key_length_min: 8,
  /** Accounts and operations are names, not documents. */
  name_length_max: 255,
  /** How many identifiers a business key may be made of. */
  business_key_parts_max: 16,
  /** Time enough to fill in a form and send it; a key that leaked is soon worth nothing. */
  issued_key_lifetime_ms: 3_600_000,
  /** No form stays open longer. An expiry further ahead is not ours, or a clock is wrong. */
  issued_key_lifetime_max_ms: 7 * 24 * 3_600_000,
  /** How far the clocks of two processes may be apart. Synchronised ones differ by milliseconds. */
  issued_key_skew_ms: 60_000,

  /** A protected request body is read whole to fingerprint it. */
  body_size_max_bytes: 1_048_576,
  /** Far more than a payment request needs; canonicalize was seen to overflow the stack near 2,400 levels. */
  json_depth_max: 64,
  /** Members and elements in all; bounds the time that canonicalization takes. */
  json_members_max: 10_000,
  /** Fields that may be included in or excluded from a fingerprint. */
  pointers_max: 64,
  /** HMAC-SHA-256 wants as many bits of key as it has of output. */
  secret_size_min_bytes: 32,

  /** Stored replies are read back by every retry. */
  reply_size_max_bytes: 1_048_576,
  /** Replayed replies that a process keeps for the next retry: enough for a storm, little for a process. */
  recent_replies_max_bytes: 16_777_216,
  /** How long they are kept: a record that was removed is forgotten here a moment later too. */
  recent_reply_max_ms: 10_000,
  /** What an error leaves in the history: enough to recognise it, too little to leak a body. */
  error_message_length_max: 300,
  /** Codes and names of errors are words; a longer text was not meant as one. */
  error_code_length_max: 100,

  /** Stripe's v1 retention; longer than any sensible client retries. */
  retention_ms: 24 * 3_600_000,
  /** How long an owner is presumed alive without a sign of life. */
  lease_ms: 30_000,

  /** Heartbeats end here: a promise that never settles does not own a key for ever. */
  in_progress_max_ms: 300_000,
  /** How long a call to the outside may take, where its step does not say so. Far less than a lease. */
  call_timeout_ms: 10_000,
  /** How often one attempt repeats a call that was not executed, or whose outcome is in doubt. */
  calls_max: 3,
  /** How long the other side remembers a key, where a step does not say so: Stripe's day. */
  call_key_lifetime_ms: 24 * 3_600_000,
  /** How long a call that was sent may stay unseen by the other side's lookup. */
  call_settle_ms: 120_000,
  /** Backing off between calls: the other side is in trouble, and others call it too. */
  call_backoff_ms: 100,
  /** Calls of one operation that operators may declare void. More of them are a fault of the other side, to be settled there. */
  void_calls_max: 16,
  /** Steps of one operation, undone ones included. More is a loop. */
  steps_max: 200,
  /** The result of one step: an id and what the next step needs, not a document. */
  step_result_max_bytes: 65_536,
  /** All results of an operation together; they are written again with every step. */
  progress_max_bytes: 1_048_576,

  /** How long a claim is repeated when the store is away: a caller waits for it. */
  claim_max_ms: 5_000,
  /** How long a claim of ours that executed nothing is tried to be given back, how many may wait for it, and how many go at once. */
  give_back_max_ms: 600_000,
  give_backs_max: 10_000,
  give_backs_at_once: 8,
  /** How long a result is tried to be saved when the store is away: the work is done, and must not be lost. */
  save_max_ms: 30_000,

  /** Longest wait for another's open transaction on the same key or row before it counts as in progress. */
  lock_wait_max_ms: 3_000,
  /** The same when all but one connection wait already: the last one must stay free for bystanders. */
  lock_wait_last_ms: 10,
  /** The same for a group of claims or completions: a member that needs longer goes on alone. */
  lock_wait_group_ms: 10,
  /** How long the answer to a group may take: it waits for no lock, so a commit is all that it waits for. */
  group_max_ms: 2_000,
  /** Claims and completions in one commit: far more than wait at once where a commit takes a millisecond. */
  group_max: 128,
  /** Replies that are larger are written alone: a group is held in memory, twice, as text. */
  group_reply_max_bytes: 16_384,
  /** A transaction whose owner says nothing for this long is rolled back by the server, so its key is free. */
  idle_in_transaction_max_ms: 10_000,
  /** One attempt of a transaction, from its first statement to the answer of COMMIT. */
  transaction_max_ms: 30_000,
  /** All attempts of one call together. */
  deadline_ms: 60_000,
  /** Attempts after serialization failures, deadlocks and lost connections. */
  attempts_max: 12,
  /** Backing off between attempts: full jitter between these two. */
  backoff_min_ms: 5,
  backoff_max_ms: 1_000,
  /** How long to go on asking whether a COMMIT whose answer was lost took effect. */
  settle_max_ms: 30_000,
  /** A lookup or another short statement of our own. */
  statement_max_ms: 10_000,
  /** Waiting for a connection. */
  connection_wait_max_ms: 10_000,
  /** Callers that wait for a connection, or for a flight with the same key; more are refused at once. */
  waiting_max: 10_000,
  /** Keys in one batched lookup. */
  look_batch_max: 128,
  /** How long a lookup may be put off while others are ready to run before it. */
  look_delay_max_ms: 5,
  /** A batch without an answer for so long lets the next one go: its connection may be dead. */
  batch_wait_max_ms: 25,
  /** A statement of the work is prepared when it has come so often: twice may be chance. */
  prepare_after: 3,
  /** Texts that are watched, and texts that are prepared; each of the latter takes memory in every session. */
  statements_seen_max: 1_000,
  statements_prepared_max: 100,
  /** Times that a claim looks again when a race gave it no row. */
  claim_looks_max: 8,
  /** Attempts that explain() shows; the newest win. */
  history_max: 100,
  /** How long close() lets running work finish. */
  close_max_ms: 30_000,
  /** How long close() then waits for the connections of its own pool. */
  pool_end_max_ms: 1_000,
  /** What a client that met another's attempt is told to wait at least: where nothing is known, an answer is near. */
  retry_after_ms: 1_000,
  /** And at most: evidence or an operator may settle it before the next look. */
  retry_after_max_ms: 3_600_000,
  /** An attempt that began so long ago and is not finished has been forgotten by everybody. */
  stuck_after_ms: 3_600_000,
  /** A store that is away fails every call: how often that is told anew. */
  store_away_again_ms: 30_000,
  /** How often stuck records are counted, where anybody observes. */
  stuck_check_every_ms: 60_000,
  /** A timer of Node.js that is set to more than this fires at once. */
  timer_max_ms: 2_147_483_647,
  /** Events in one batch of a lane: the row that lists them stays small, and a cursor moves seldom. */
  outbox_batch_max: 500,
  /** Lanes that a relay takes at once, of sixteen: others have something to do too. */
  lanes_taken_max: 8,
  /** Events that a publisher is given at once. */
  publish_max: 1_000,
  /** How long one publish may take. Less than the lease: who is late is told to stop, not robbed. */
  publish_timeout_ms: 10_000,
  /** How long a relay is presumed alive without having ended its round. */
  relay_lease_ms: 30_000,
  /** Refusals by a destination that lives, after which an event waits for an operator. */
  event_tries_max: 10,
  /** Backing off from a destination: it is asked soon again, and never less than once in a minute. */
  relay_backoff_min_ms: 100,
  relay_backoff_max_ms: 60_000,
  /** How long one destination, or a job, may keep a relay from the others. */
  relay_patience_ms: 250,
  /** How often the lag of destinations is told, where anybody observes. */
  lag_every_ms: 10_000,
  /** Jobs that a relay runs at once. */
  jobs_at_once: 20,
  /** How long one job may take. */
  job_timeout_ms: 60_000,
  /** For how long a job is taken beyond its timeout: time to stop, and to say how it ended. */
  job_lease_margin_ms: 30_000,
  /** With the backing off below, most of a day. */
  job_attempts_max: 30,
  job_backoff_min_ms: 1_000,
  job_backoff_max_ms: 3_600_000,
  /** How long delivered events, and done jobs that have a key, are kept. */
  delivered_retention_ms: 24 * 3_600_000,
  /** How long messages are known: longer than any sender repeats one. Duplicates a week late have been seen. */
  inbox_retention_ms: 30 * 24 * 3_600_000,
  /** How often they are removed, and how much of it at once: short transactions. */
  clean_every_ms: 60_000,
  clean_batches_max: 16,
  clean_rows_max: 1_000,
  /** What an operator is shown of what is parked. */
  parked_shown_max: 1_000,
  /** Posts to one address at once. */
  http_posts_at_once: 8,
  /** The retry rate is that of the last minute, counted in stretches of a second. */
  retry_rate_window_ms: 60_000,
  retry_rate_slots: 60,
  /** Hexadecimal characters of a key's digest in logs and spans (chance makes no two equal), and values of one label of the metrics. */
  key_digest_length: 12,
  label_values_max: 500,

  /** An operation that so many owners have left unfinished is not tried again: it may be what ended them. */
  owners_max: 50,
  /** How long the owner of an operation may be silent, after its lease, before a worker goes on with it. */
  grace_ms: 30_000,
  /**
   * When an outcome in doubt is looked at, counted from the look before; then it is parked. Most doubts end within seconds, and a
   * client waits meanwhile. Each pause is two to six times the last; together 31 hours, longer than keys are remembered.
   */
  reconcile_after_ms: [2_000, 5_000, 15_000, 45_000, 120_000, 600_000, 3_600_000, 21_600_000, 86_400_000],
  /** How long `recover` may take to answer, and for how long its look is held, in case its process dies meanwhile. */
  recover_max_ms: 10_000,
  recover_hold_ms: 30_000,
  /** A record that counts on a `recover` which no process has had for so long is parked by any process. */
  recover_orphaned_ms: 3_600_000,
  /** The background loop of every process: how often it looks, what it takes at once, and how it goes on. */
  background_every_ms: 10_000,
  background_batch_max: 20,
  background_at_once: 4,
  background_prune_max: 200,
  background_again_ms: 1_000,
  background_backoff_max_ms: 300_000,
  /**
   * Operations that wait for a worker: how often the background loop looks, by how much one has to be overdue, for how long it has to stand
   * still after that, and when it is told again. A full batch of calls that all time out takes a worker some ten minutes.
   */
  unattended_check_every_ms: 300_000,
  unattended_after_ms: 900_000,
  unattended_again_ms: 3_600_000,
  /** Records that a worker takes in one batch, and works on at once. */
  worker_batch_max: 100,
  worker_at_once: 8,
  /** How often a worker looks where nothing waits for it and it does not say so itself. */
  worker_every_ms: 1_000,
  /** The longest pause of a worker after errors: a store that comes back is soon worked on again. */
  worker_backoff_max_ms: 30_000,
  /** How long stop() waits for batches that run. They are bounded, and nothing is lost if one is not waited for. */
  worker_stop_max_ms: 15_000,

  /** A holder that says nothing for longer would be missed before; one that dies keeps others out for so long. */
  lock_ttl_max_ms: 3_600_000,
  /** Locks are extended no longer than this by themselves: a promise that never settles does not hold one for ever. */
  lock_hold_max_ms: 300_000,
  /** How long one try for a lock waits for the open transaction of its last holder. */
  lock_row_wait_ms: 50,
  /** The longest pause between two tries for a lock: a release is noticed about as late. */
  lock_poll_max_ms: 250,

  /** Why an operator decided as they did: a paragraph, and the number of a ticket. */
  why_length_max: 1_000,
  /** Records on one page of a list, where no other number is asked for, and the most that can be. */
  list_default: 50,
  list_max: 500,
  /** Names of operations that are looked through for one key of an account: an index is asked once for each. */
  key_operations_max: 10_000,
  /** Other operations with the same key that the story of a key without a record names. */
  near_names_max: 5,

  /** How long evidence about calls is kept: far beyond the last look at a call in doubt. */
  evidence_kept_ms: 90 * 24 * 3_600_000,
  /** How long the first evidence about a call keeps later evidence out: after that it may be of an earlier life of the key. */
  evidence_first_ms: 3_600_000,
  /** How often the reaper looks once nothing is left to remove. No caller waits for it. */
  reap_every_ms: 60_000,
  /** Records in one batch: rows that are locked until its commit, and dead rows for the vacuum. */
  reap_batch_max: 1_000,
  /** A batch that was too slow is halved, down to this. */
  reap_batch_min: 10,
  /** How long one statement of the reaper may take: a caller that comes for a record in the batch waits for it. */
  reap_statement_max_ms: 2_000,
  /**
   * Finished records stay this long after their last change, however short their retention: one may be the only proof
   * of what became of a COMMIT whose answer was lost, or keep a late one from taking effect. Ten times what the default
   * bounds of a transaction and of settling come to.
   */
  finished_kept_min_ms: 600_000,

  ...WEBHOOK_LIMITS,

  /** How long a process waits for another one that migrates. */
  migration_wait_max_ms: 120_000,
  /** The one time that a start reads the records: after a key was taken out of a ring. */
  key_check_max_ms: 60_000,

  /** How long a request waits for a limiter: a limit is not worth more than the work behind it. */
  limit_wait_max_ms: 250,
  /** After trouble with a subject its limiter does not ask about it for so long, and so for at most so many subjects at once. */
  limit_pause_ms: 1_000,
  limit_paused_max: 10_000,
  /** Points of one window, and takes of it in one statement; together they stay an integer of the database. */
  limit_points_max: 1_000_000,
  limit_batch_max: 1_000,
  /** No window is longer; what is to be remembered for longer is not a limit of speed. */
  limit_window_max_ms: 31 * 24 * 3_600_000,
  /** Windows of one subject, each a statement; and the name of a limiter, in front of a digest in a column of 255 characters. */
  limit_rules_max: 8,
  limit_name_length_max: 64,
  /** How long a full window is known to be full without asking: another process may have given points back. */
  limit_full_kept_ms: 100,
  /** Full windows that a process knows of. */
  limit_full_max: 10_000,
  /** Subjects of which a process knows how much of their window is used, for takes that the store does not answer. */
  limit_known_max: 10_000,
  /** Ended windows that are removed at once, and how often that is repeated: ten thousand new subjects a second are kept up with. */
  limit_sweep_max: 10_000,
  limit_sweeps_max: 300,
  /** How often it is looked how late the event loop is; its delays are sampled more often. */
  overload_look_every_ms: 100,
  /** How long a new request may have to wait for a connection. Less than it waits to be counted: limits may share the pool. */
  overload_queue_max_ms: 200,
  /** A queue is judged after so long; a burst that is served by then is no overload. */
  overload_queue_watch_ms: 500,
  /** No client is told to come back later than this: a stall may end at any moment. */
  overload_retry_after_max_ms: 30_000,
  overload_sample_every_ms: 10,
} as const
