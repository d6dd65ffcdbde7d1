/**
 * Tells whether SQL text commits: whether one of its statements starts with COMMIT or END. What stands in
 * literals, quoted names and comments does not count; `SELECT 'COMMIT'` commits nothing.
 *
 * Strings are read with `standard_conforming_strings = on`, the default since PostgreSQL 9.1.
 */
export function containsCommit(sql: string): boolean {
  // Nearly every statement ends here, without being read word by word.
  if (!/\b(?:commit|end)\b/i.test(sql)) return false

  let atStart = true
  let previousWord = ''
  let position = 0
  while (position < sql.length) {
    const next = skipBlank(sql, position)
    if (next > position) {
      position = next
      continue
    }
    const end = skipToken(sql, position)
    const word = sql.slice(position, Math.min(end, position + WORD_LENGTH_MAX)).toLowerCase()
    if (atStart && (word === 'commit' || word === 'end')) return true
    // The END of a function's body is not a statement; what comes after such a body is not looked at.
    if (word === 'atomic' && previousWord === 'begin') return false
    atStart = word === ';'
    previousWord = word
    position = end
  }
  return false
}

/** Long enough to tell the words that matter from others that begin like them. */
const WORD_LENGTH_MAX = 16

const WORD = /[a-z_\u0080-\uffff][\w$\u0080-\uffff]*/iy
const NUMBER = /\d[\w.]*/y
const DOLLAR_TAG = /\$(?:[a-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$/iy

/** The end of the white space or comment at this position, or the position itself. */
function skipBlank(sql: string, position: number): number {
  if (/\s/.test(sql.charAt(position))) return position + 1
  if (sql.startsWith('--', position)) return endOf(sql, '\n', position)
  if (!sql.startsWith('/*', position)) return position
  // Block comments nest in PostgreSQL.
  let depth = 1
  let end = position + 2
  while (depth > 0 && end < sql.length) {
    if (sql.startsWith('/*', end)) depth += 1
    else if (sql.startsWith('*/', end)) depth -= 1
    else {
      end += 1
      continue
    }
    end += 2
  }
  return end
}

/** The end of the token at this position; a literal that is not closed reaches to the end of the text. */
function skipToken(sql: string, position: number): number {
  const character = sql.charAt(position)
  if (character === "'" || character === '"') return skipQuoted(sql, position + 1, character, false)
  if (/^e'/i.test(sql.slice(position, position + 2))) return skipQuoted(sql, position + 2, "'", true)
  const tag = match(DOLLAR_TAG, sql, position)
  if (tag !== '') return endOf(sql, tag, position + tag.length)
  const word = match(WORD, sql, position) || match(NUMBER, sql, position)
  return position + (word.length || 1)
}

function skipQuoted(sql: string, start: number, quote: string, escapes: boolean): number {
  for (let position = start; position < sql.length; position++) {
    const character = sql.charAt(position)
    if (escapes && character === '\\') position += 1
    else if (character === quote && sql.charAt(position + 1) !== quote) return position + 1
    else if (character === quote) position += 1
  }
  return sql.length
}

function endOf(sql: string, mark: string, from: number): number {
  const found = sql.indexOf(mark, from)
  return found === -1 ? sql.length : found + mark.length
}

function match(pattern: RegExp, sql: string, position: number): string {
  pattern.lastIndex = position
  return pattern.exec(sql)?.[0] ?? ''
}
