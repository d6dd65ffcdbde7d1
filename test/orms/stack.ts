import type { PostgresTx } from 'onlyonce/postgres'

/** The table that all ORMs work on. */
export const ENTRIES = `CREATE TABLE public.entries (
  id serial PRIMARY KEY, note text NOT NULL, amount numeric, big bigint, data jsonb, at timestamptz, day date)`

/** An ORM at work: on its own pool, or on a transaction of a protected request. */
export interface Session {
  write(note: string): Promise<unknown>
  /** Writes a row with a value of each type, reads it by its note, and gives the values as the ORM gives them. */
  types(note: string): Promise<Readonly<Record<Column, unknown>>>
  /** A transaction of the ORM's own, in this one. */
  nested(work: (inner: Session) => Promise<void>): Promise<unknown>
}

export type Column = 'amount' | 'big' | 'data' | 'at' | 'day'

/** The ORM as a service has it: set up once. */
export interface Ready {
  /** On its own pool. */
  readonly alone: Session
  /** On the transaction of a protected request. */
  on<T>(tx: PostgresTx, work: (session: Session) => Promise<T>): Promise<T>
  close(): Promise<unknown>
}

/** One way to reach PostgreSQL. A new one is one more entry of the table in stacks.ts. */
export interface Stack {
  readonly name: string
  /** The package whose version is told in the docs. */
  readonly package: string
  /** The line of code that the docs tell; it stands in the file of the entry. */
  readonly line: string
  readonly file: string
  /** What becomes of the second of two nested transactions at once, where it does not wait for the first. */
  readonly second?: 'refused'
  open(url: string): Promise<Ready>
}

export const VALUES = {
  amount: '12345678901234567890.123456789',
  big: '9007199254740993',
  data: { list: [1, 'two'], none: null },
  at: '2026-03-29T01:30:00.123Z',
  day: '2026-03-29',
} as const
