/**
 * The limits of an embedded server, each with its reason. Units stand last in the name.
 */
export const EMBEDDED_LIMITS = {
  /** From the call to the first answer, crash recovery included; recovery replays at most max_wal_size. */
  startMaxMs: 60_000,
  /** initdb takes about a second; a slow disk takes ten. */
  initdbMaxMs: 60_000,
  /** A fast shutdown writes one checkpoint. After this the server is told to quit without one. */
  stopMaxMs: 30_000,
  /** After SIGQUIT the server gives its children five seconds and then kills them itself. */
  quitMaxMs: 10_000,
  /** How long a server whose process was killed waits for the next start in its folder to adopt it. */
  orphanGraceMs: 15_000,
  /** After SIGKILL only the kernel has work left. */
  killMaxMs: 10_000,
  /** One attempt to connect; an answer on loopback takes a few milliseconds. */
  connectMaxMs: 5_000,
  /** How often a file or a process is looked at while something is awaited. */
  pollMs: 10,
  /** Programs that only print something: `postgres --version`, `id -u`. */
  probeMaxMs: 10_000,
  /** Ports that are tried before giving up. */
  portTriesMax: 50,
  /** What an error quotes from the server's log. */
  logTailLengthMax: 2_000,
  /** A log larger than this is set aside at the next start; one old log is kept. */
  logSizeMaxBytes: 10 * 1024 * 1024,
  /** Initializations that died are removed after this long: by then no process is at work in them. */
  abandonedAfterMs: 600_000,
} as const
