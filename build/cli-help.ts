/**
 * npm run cli-help
 *
 * Writes the help of every command into docs/reference/cli.md, behind the line that says so. test/cli/door.test.ts compares the page with the help.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { COMMANDS } from '../src/cli/commands.ts'
import { helpOf } from '../src/cli/help.ts'

export const PAGE = 'docs/reference/cli.md'
const MARK = '<!-- Behind this line the page is written by `npm run cli-help`. -->\n'

/** The page as it has to be, made of the page as it is. */
export function cliPage(page: string): string {
  const [written] = page.split(MARK)
  const sections = COMMANDS.map((command) => `### ${command.name}\n\n\`\`\`text\n${helpOf(command)}\`\`\`\n`)
  return `${written}${MARK}\n${sections.join('\n')}`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const path = join(fileURLToPath(new URL('..', import.meta.url)), PAGE)
  writeFileSync(path, cliPage(readFileSync(path, 'utf8')))
}
