/**
 * npm run migrations
 *
 * Writes the SQL of migrations/ as text into a module, so that the library reads no file at run time: a bundle has none. The files
 * stay what people read and change; test/tidy.test.ts compares the module with them.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const EMBEDDED = 'src/store/postgres/migrations.generated.ts'

const HEAD = `/** Written from migrations/ by \`npm run migrations\`. Change the files there, then run it again. */
export const SHIPPED: readonly { readonly name: string; readonly text: string }[] = [
`

/** The module that holds the migrations of a project. */
export function embedMigrations(root: string): string {
  const folder = join(root, 'migrations')
  const names = readdirSync(folder).filter((name) => name.endsWith('.sql'))
  const entries = names.sort().map((name) => {
    const text = readFileSync(join(folder, name), 'utf8').replaceAll('\r\n', '\n')
    return `  {\n    name: '${name}',\n    text: \`${text.replaceAll(/[\\`]|\$\{/g, '\\$&')}\`,\n  },\n`
  })
  return `${HEAD}${entries.join('')}]\n`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const root = fileURLToPath(new URL('..', import.meta.url))
  writeFileSync(join(root, EMBEDDED), embedMigrations(root))
}
