/**
 * `npm run build:service`: the programs of the payment service as files of JavaScript, beside its migrations. Packages stay outside: what runs needs
 * `npm ci --omit=dev` and no compiler.
 */
import { rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { buildSync } from 'esbuild'
import { PROGRAMS } from './service-programs.ts'

const SERVICE = fileURLToPath(new URL('../apps/payments/', import.meta.url))
rmSync(`${SERVICE}dist`, { recursive: true, force: true })
buildSync({
  entryPoints: Object.fromEntries(Object.entries(PROGRAMS).map(([name, file]) => [name, SERVICE + file])),
  outdir: `${SERVICE}dist`,
  outExtension: { '.js': '.mjs' },
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node20',
  packages: 'external',
  sourcemap: true,
  logLevel: 'warning',
})
