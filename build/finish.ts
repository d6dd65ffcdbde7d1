/**
 * The last step of `npm run build`: what tsc leaves open after it has written dist/esm and dist/cjs.
 */
import { chmodSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const DIST = fileURLToPath(new URL('../dist/', import.meta.url))

// Node and TypeScript read the format of a file from the nearest package.json.
writeFileSync(join(DIST, 'cjs', 'package.json'), '{ "type": "commonjs", "sideEffects": false }\n')

// tsc has taken here.cjs.ts for here.ts; files that import it name here.js.
const embedded = join(DIST, 'cjs', 'store', 'embedded')
for (const ending of ['js', 'd.ts']) {
  renameSync(join(embedded, `here.cjs.${ending}`), join(embedded, `here.${ending}`))
}

// npm makes the program of the package executable where it is installed; a link to this folder is used as it is.
chmodSync(join(DIST, 'esm', 'cli', 'bin.js'), 0o755)

// tsc rewrites the endings of imports in code, not in declarations. TypeScript 5 reads both there; other tools do not.
for (const file of declarations()) {
  const text = readFileSync(file, 'utf8')
  writeFileSync(file, text.replaceAll(/((?:from|import) ?\(?['"]\.\.?\/[^'"]+)\.ts(['"])/g, '$1.js$2'))
}

function declarations(): string[] {
  return readdirSync(DIST, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.d.ts'))
    .map((name) => join(DIST, name))
}
