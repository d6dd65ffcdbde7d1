/**
 * The limits of an embedded server, each with its reason. Units stand last in the name.
 */
export const EMBEDDED_LIMITS = {
  /** From the call to the first answer, crash recovery included; recovery replays at most max_wal_size. */
  start_max_ms: 60_000,
  /** initdb takes about a second; a slow disk takes ten. */
  initdb_max_ms: 60_000,
  /** A fast shutdown writes one checkpoint. After this the server is told to quit without one. */
  stop_max_ms: 30_000,
  /** After SIGQUIT the server gives its children five seconds and then kills them itself. */
  quit_max_ms: 10_000,
  /** How long a server whose process was killed waits for the next start in its folder to adopt it. */
  orphan_grace_ms: 15_000,
  /** After SIGKILL only the kernel has work left. */
  kill_max_ms: 10_000,
  /** One attempt to connect; an answer on loopback takes a few milliseconds. */
  connect_max_ms: 5_000,
  /** How often a file or a process is looked at while something is awaited. */
  poll_ms: 10,
  /** Programs that only print something: `postgres --version`, `id -u`. */
  probe_max_ms: 10_000,
  /** Ports that are tried before giving up. */
  port_tries_max: 50,
  /** What an error quotes from the server's log. */
  log_tail_length_max: 2_000,
  /** A log larger than this is set aside at the next start; one old log is kept. */
  log_size_max_bytes: 10 * 1024 * 1024,
  /** Initializations that died are removed after this long: by then no process is at work in them. */
  abandoned_after_ms: 600_000,
} as const
