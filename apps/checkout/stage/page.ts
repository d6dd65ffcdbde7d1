import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

const FOLDER = new URL('../page/', import.meta.url)

/** Scripts, styles and requests of this address alone. Nothing inline, so that no text of a payment can become a script. */
export const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ')

export interface PageFile {
  readonly type: string
  readonly text: string
}

/** The files of the page by their addresses. Its program is bundled from TypeScript here, so there is no build to run before a start. */
export async function readPage(apiKey: string): Promise<Readonly<Record<string, PageFile>>> {
  const read = async (name: string) => await readFile(new URL(name, FOLDER), 'utf8')
  const [html, css, icon, script] = await Promise.all([
    read('index.html'),
    read('style.css'),
    read('icon.svg'),
    bundle(),
  ])
  return {
    '/': { type: 'text/html; charset=utf-8', text: html.replace('{{api_key}}', apiKey) },
    '/checkout/style.css': { type: 'text/css; charset=utf-8', text: css },
    '/checkout/icon.svg': { type: 'image/svg+xml', text: icon },
    '/checkout/app.js': { type: 'text/javascript; charset=utf-8', text: script },
  }
}

async function bundle(): Promise<string> {
  // Only in development, where it is installed.
  const { build } = await import('esbuild')
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL('main.ts', FOLDER))],
    tsconfig: fileURLToPath(new URL('tsconfig.json', FOLDER)),
    bundle: true,
    write: false,
    minify: true,
    format: 'esm',
    target: 'es2022',
    logLevel: 'silent',
  })
  return outputFiles[0]!.text
}
