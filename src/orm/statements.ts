import { OnlyonceError } from '../core/errors.ts'

/** How a nested transaction was asked to be. */
export interface Modes {
  /** In small letters, as the server names it; null where none is asked for. */
  readonly isolation: string | null
  readonly readOnly: boolean
}

/** What a text means for the transaction that it is sent in. */
export type Meaning =
  | { readonly kind: 'plain' }
  /** `command` is how the server calls it in its answer. */
  | { readonly kind: 'begin'; readonly command: 'BEGIN' | 'START'; readonly modes: Modes }
  | { readonly kind: 'commit' }
  | { readonly kind: 'rollback' }
  /** SAVEPOINT, RELEASE and ROLLBACK TO. */
  | { readonly kind: 'savepoint' }
  /** SET TRANSACTION. */
  | { readonly kind: 'modes'; readonly modes: Modes }
  | { readonly kind: 'refused'; readonly error: OnlyonceError }

const PLAIN: Meaning = { kind: 'plain' }

/** Texts that hold none of this are plain. Most texts do, so they are looked at no further. */
const SUSPICIOUS = new RegExp(
  [
    String.raw`^(?:\s|--|/\*|;)*(?:begin|start|commit|end|rollback|abort|savepoint|release|prepare|set|reset|listen|unlisten|copy|discard|deallocate|declare)\b`,
    // A comment may hide where a statement begins.
    String.raw`^\s*(?:--|/\*)`,
    String.raw`;\s*\S`,
    'advisory_',
    'set_config',
  ].join('|'),
  'i',
)

/** E'text\'', 'text', "name", $tag$ text $tag$, and comments. */
const QUOTED =
  /\b[eE]'(?:[^'\\]|\\[\s\S]|'')*'|'[^']*(?:''[^']*)*'|"[^"]*(?:""[^"]*)*"|(?<![\w$\u0080-\uffff])\$((?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?)\$[\s\S]*?\$\1\$|--[^\n]*|\/\*[\s\S]*?\*\//g

/**
 * What a text means. Some ORMs put values into the text itself, so what is quoted is never read as a statement.
 *
 * What is overlooked here, for example behind a comment inside of a comment, does no harm: `tx` itself notices a statement that has ended its transaction.
 */
export function meaningOf(text: string): Meaning {
  if (!SUSPICIOUS.test(text)) return PLAIN
  const bare = text.replace(QUOTED, (quoted) => (/^(?:--|\/\*)/.test(quoted) ? ' ' : "''"))
  const statements = bare
    .split(';')
    .map((statement) => statement.trim().replace(/\s+/g, ' ').toLowerCase())
    .filter((statement) => statement !== '')
  if (statements.length === 1) return meaningOfOne(statements[0]!)
  for (const statement of statements) {
    const meaning = meaningOfOne(statement)
    if (meaning.kind === 'refused') return meaning
    if (meaning.kind !== 'plain') return refusedControl(ALONE)
  }
  return PLAIN
}

function meaningOfOne(statement: string): Meaning {
  const first = /^[a-z]+/.exec(statement)?.[0]
  switch (first) {
    case 'begin':
    case 'start':
      return meaningOfBegin(statement, first)
    case 'commit':
    case 'end':
      return ENDS.test(statement) ? { kind: 'commit' } : refusedControl(CHAINED)
    case 'rollback':
    case 'abort':
      if (TO_SAVEPOINT.test(statement)) return { kind: 'savepoint' }
      return ENDS.test(statement) ? { kind: 'rollback' } : refusedControl(CHAINED)
    case 'savepoint':
    case 'release':
      return { kind: 'savepoint' }
    case 'prepare':
      return statement.startsWith('prepare transaction') ? refusedControl(CHAINED) : PLAIN
    case 'set':
      return meaningOfSet(statement)
    default:
      return refusalOf(statement)
  }
}

function meaningOfBegin(statement: string, first: 'begin' | 'start'): Meaning {
  const modes = statement.replace(/^(?:begin(?: work| transaction)?|start transaction)\b/, '')
  // The server refuses every other statement that begins so.
  if (modes === statement) return PLAIN
  return withModes(modes, (modes) => ({
    kind: 'begin',
    command: first === 'begin' ? 'BEGIN' : 'START',
    modes,
  }))
}

const ENDS = /^(?:commit|end|rollback|abort)(?: work| transaction)?(?: and no chain)?$/
const TO_SAVEPOINT = /^rollback(?: work| transaction)? to\b/

function meaningOfSet(statement: string): Meaning {
  if (/^set (?:local )?transaction\b/.test(statement))
    return withModes(statement.replace(/^set (?:local )?transaction/, ''), (modes) => ({
      kind: 'modes',
      modes,
    }))
  if (/^set (?:local|constraints)\b/.test(statement)) return PLAIN
  return refused('SET changes the session, which other requests use afterwards. Use SET LOCAL.')
}

/** What would outlive the transaction, or has no place in it. */
function refusalOf(statement: string): Meaning {
  const found = REFUSED.find(([pattern]) => pattern.test(statement))
  return found === undefined ? PLAIN : refused(found[1])
}

const REFUSED: readonly (readonly [RegExp, string])[] = [
  [
    /^(?:un)?listen\b/,
    'LISTEN belongs to a session, and this one is used by other requests afterwards. Listen with a client of your own.',
  ],
  [
    /^copy\b/,
    'COPY does not work through tx. Send the rows as arrays, as parameters, or use once.within with a client of your own.',
  ],
  [
    /^(?:reset|discard|deallocate)\b/,
    'RESET, DISCARD and DEALLOCATE change the session, which other requests use afterwards.',
  ],
  [
    /^declare\b.*\bwith hold\b/,
    'A cursor WITH HOLD outlives the transaction, in a session that other requests use afterwards.',
  ],
  [
    /\bpg_(?:try_)?advisory_(?:lock|unlock)/,
    'A session advisory lock outlives the transaction, in a session that other requests use afterwards. Use pg_advisory_xact_lock.',
  ],
  [
    /\bset_config\s?\([^)]*,\s?(?:false|''|'f'|0)\s?\)/,
    'set_config(…, false) changes the session, which other requests use afterwards. Pass true.',
  ],
]

const ALONE =
  'A statement that begins or ends a nested transaction has to be sent alone, not in a text with others.'
const CHAINED = 'Two-phase commit and AND CHAIN would end the transaction of the protected request.'

function withModes(text: string, make: (modes: Modes) => Meaning): Meaning {
  const isolation = /\bisolation level (serializable|repeatable read|read committed|read uncommitted)\b/.exec(
    text,
  )
  const left = text
    .replace(isolation?.[0] ?? '', '')
    .replace(/\bread (?:only|write)\b|\bnot deferrable\b|,/g, '')
    .trim()
  // DEFERRABLE, and a snapshot of another transaction: both are decided before a transaction has its first statement.
  if (left !== '') {
    const detail = `The transaction has begun already, so it cannot be ${left.toUpperCase()} any more.`
    return { kind: 'refused', error: new OnlyonceError('isolation_refused', { detail }) }
  }
  return make({ isolation: isolation?.[1] ?? null, readOnly: /\bread only\b/.test(text) })
}

function refused(detail: string): Meaning {
  return { kind: 'refused', error: new OnlyonceError('statement_refused', { detail }) }
}

function refusedControl(detail: string): Meaning {
  return { kind: 'refused', error: new OnlyonceError('transaction_control_refused', { detail }) }
}
