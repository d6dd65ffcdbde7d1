/**
 * What an error of PostgreSQL says about the work whose statement got it. The first two characters of its code, the class,
 * decide; a few codes are told apart from their class.
 *
 * - `meant`: the data or the rules that the author has set refuse the work. It would be refused again, so it is a throw of the
 *   work like any other: an operation is undone, and the refusal may be stored.
 * - `passing`: the server cannot do it now. It was rolled back, and is tried again later; nothing is undone, nothing is stored,
 *   and the client hears that the store is away.
 * - `mistake`: the statement cannot be run by this server as it is: a table, a column or a right is missing, as after a deploy
 *   that came before its migration. The function did not mean to throw it, so nothing is undone or stored; a person repairs it, and the record
 *   goes on then.
 */
export type Meaning = 'meant' | 'passing' | 'mistake'

const BY_CLASS: Readonly<Record<string, Meaning>> = {
  // A warning, no data, a case that is missing: what a function in the database raises to say so.
  '01': 'meant',
  '02': 'meant',
  '03': 'mistake',
  // The link to the server, or from it to another one (postgres_fdw, dblink), is gone.
  '08': 'passing',
  '09': 'meant',
  '0A': 'mistake',
  '0B': 'mistake',
  '0F': 'mistake',
  '0L': 'mistake',
  '0P': 'mistake',
  '0Z': 'mistake',
  '20': 'meant',
  // More rows than one, or data that does not fit: a division by zero, a number out of range, a text that is no date.
  '21': 'meant',
  '22': 'meant',
  // Constraints are what authors refuse with.
  '23': 'meant',
  '24': 'mistake',
  // A transaction in a state that does not allow it. Read-only is told apart below.
  '25': 'mistake',
  '26': 'mistake',
  '27': 'meant',
  // Who may connect is decided before any statement; inside one it is a role that cannot be taken on.
  '28': 'mistake',
  '2B': 'mistake',
  '2D': 'mistake',
  '2F': 'meant',
  '34': 'mistake',
  // Functions of the user's in another language.
  '38': 'meant',
  '39': 'meant',
  '3B': 'mistake',
  '3D': 'mistake',
  '3F': 'mistake',
  // Collisions are rerun before anybody asks here; what is left of them may go well the next time.
  '40': 'passing',
  // Syntax, missing tables and columns, and rights (42501, which a row-level policy raises too): nothing that the work says.
  '42': 'mistake',
  '44': 'meant',
  // The disk is full, memory is short, there are too many connections.
  '53': 'passing',
  // Longer, deeper or wider than the server takes.
  '54': 'mistake',
  // Held by another at the moment, or not ready.
  '55': 'passing',
  // Cancelled, too slow, or the server is being shut down or started.
  '57': 'passing',
  // Files, disks and the operating system.
  '58': 'passing',
  '72': 'passing',
  F0: 'passing',
  // Another server, behind a foreign table.
  HV: 'passing',
  // RAISE EXCEPTION: the author's own words.
  P0: 'meant',
  // The server itself is broken, or its files are.
  XX: 'passing',
}

const BY_CODE: Readonly<Record<string, Meaning>> = {
  // Read-only: a standby, or a server that is switched over.
  '25006': 'passing',
  // Ended by the server because it was idle, or took too long.
  '25P03': 'passing',
  '25P04': 'passing',
  // A constraint that is checked at COMMIT.
  '40002': 'meant',
}

/** A class that PostgreSQL does not know is one of the author's own, by RAISE … USING ERRCODE. */
export function meaningOf(code: string): Meaning {
  return BY_CODE[code] ?? BY_CLASS[code.slice(0, 2)] ?? 'meant'
}
