/** The root of the package: few names, and nothing behind them that a service may not have. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('../src/index.ts', import.meta.url))
const NAMES_MAX = 35
/** Neither a driver nor files nor sockets. `npm run test:package` sees the same of both builds. */
const LOADS = [
  'canonicalize',
  'node:async_hooks',
  'node:buffer',
  'node:crypto',
  'node:os',
  'node:timers/promises',
  'node:util',
  'structured-headers',
]

test('has at most 35 names, types included', () => {
  const lists = [...readFileSync(ROOT, 'utf8').matchAll(/^export (?:type )?\{([^}]*)\} from/gm)]
  const names = lists.flatMap(([, list = '']) =>
    list
      .split(',')
      .map((name) => name.trim())
      .filter(Boolean),
  )
  expect(readFileSync(ROOT, 'utf8').match(/^export/gm)).toHaveLength(lists.length)
  expect(names.length).toBeGreaterThan(10)
  expect(names.length).toBeLessThanOrEqual(NAMES_MAX)
})

test('loads neither pg nor files', async () => {
  const { metafile } = await build({
    entryPoints: [ROOT],
    bundle: true,
    write: false,
    metafile: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
  })
  const imports = Object.values(metafile.inputs).flatMap((input) => input.imports)
  const outside = new Set(imports.filter(({ external }) => external).map(({ path }) => path))
  expect([...outside].filter((name) => !LOADS.includes(name))).toEqual([])
  const rooms = Object.keys(metafile.inputs).filter((path) =>
    /src\/(?:outbox|workers|webhooks|locks|operator)\/|src\/store\/postgres\/(?:index|store)\.ts/.test(path),
  )
  expect(rooms).toEqual([])
})

test('every door is known to the types of node10, and to the compiler here', () => {
  const read = (file: string) => JSON.parse(readFileSync(new URL(`../${file}`, import.meta.url), 'utf8'))
  const { exports, typesVersions } = read('package.json')
  const doors = Object.keys(exports).filter((door) => door !== './package.json')
  const behind = doors.filter((door) => door !== '.').map((door) => door.slice(2))
  expect(Object.keys(typesVersions['*']).sort()).toEqual(behind.sort())
  const { paths } = read('tsconfig.json').compilerOptions
  expect(Object.keys(paths).sort()).toEqual(doors.map((door) => `onlyonce${door.slice(1)}`).sort())
})
