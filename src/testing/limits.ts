/**
 * The bounds of the test harness. They are apart from the library's own limits because nothing here runs in
 * production.
 */
export const TESTING_LIMITS = {
  /** Connections that one proxy carries at a time; more are closed by the listener. */
  connectionsMax: 1_024,
  /** Bytes of one direction that wait for a delay or for a slow reader before the sender is paused. */
  queueSizeMaxBytes: 262_144,
  /**
   * A batch of frontend messages is held until its Sync, so that a COMMIT at its end can be cut off whole.
   */
  batchSizeMaxBytes: 262_144,
  /** PostgreSQL refuses longer start-up packets too. */
  startupSizeMaxBytes: 10_000,
  /** Prepared statements and portals that mean COMMIT, per connection. Real clients have one of each. */
  commitNamesMax: 1_000,
  /** Longest wait for the answer to a COMMIT before it is cut off anyway. */
  answerWaitMaxMs: 10_000,
  /** Promises that wait for a fact about one proxy. */
  waitersMax: 1_000,
  /** How long such a promise waits unless told otherwise. */
  waitMaxMs: 10_000,

  /** The end of a program's output is kept: that is where the reason for its end stands. */
  outputSizeMaxBytes: 1_048_576,
  /**
   * After a process has ended its pipes may be held open by a child of its own; they are not waited for
   * longer.
   */
  outputWaitMaxMs: 2_000,
  /** One run of a program, unless told otherwise. */
  runMaxMs: 30_000,
  /** Distinct crash points of one program. */
  pointsMax: 1_000,
  /** Occurrences of one point at which a program is crashed, unless told otherwise. */
  occurrencesMax: 20,
} as const
