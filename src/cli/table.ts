/** Tables for people. */

/** What a terminal would take for an order of its own is shown as what it is: texts of the database may come from anybody. */
export function plain(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that are looked for.
  return text.replaceAll(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, (found) =>
    found === '\n' || found === '\t' ? ' ' : `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/**
 * Columns side by side, each as wide as its widest cell.
 *
 * @example
 * table(['state', 'count'], [['parked', '2']])
 */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head, ...rows].map((row) => row.map(plain))
  const widths = head.map((_, column) => Math.max(...lines.map((row) => (row[column] ?? '').length)))
  const shown = lines.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join('  ')
      .trimEnd(),
  )
  return `${shown.join('\n')}\n`
}

/** Names and what they are, one to a line. What is empty is left out. */
export function pairs(rows: readonly (readonly [name: string, value: string | number | null])[]): string {
  const shown = rows.filter(([, value]) => value !== null && value !== '')
  const width = Math.max(0, ...shown.map(([name]) => name.length))
  return shown.map(([name, value]) => `${name.padEnd(width)}  ${plain(`${value}`)}\n`).join('')
}
