import { type Dirent, readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Source as text: which parts of it are comments, texts and regular expressions, and which are code. */
export interface SourceFile {
  readonly path: string
  readonly text: string
}

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

type Kind = 'comment' | 'text' | 'regexp'

/** A regular expression stands only where a value may begin; elsewhere a slash divides. */
const TOKEN =
  /(?<comment>\/\/[^\n]*|\/\*[\s\S]*?\*\/)|(?<text>'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\[\s\S]|[^`\\])*`)|(?<regexp>(?<=[=(,:[!&|?;{}>]\s*)\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[a-z]*)/g

/** Puts spaces in place of these kinds, so that lines and columns stay where they are. */
export function blank(text: string, kinds: readonly Kind[]): string {
  return text.replace(TOKEN, (token, ...rest) => {
    const groups = rest.at(-1) as Partial<Record<Kind, string>>
    return kinds.some((kind) => groups[kind] !== undefined) ? token.replace(/[^\n]/g, ' ') : token
  })
}

export function literals(text: string): string[] {
  return [...text.matchAll(TOKEN)].flatMap(({ groups }) => groups?.text ?? [])
}

/** Puts the constants of the same file in their places: a WHERE may stand in one. */
export function expand(literal: string, text: string): string {
  return literal.replace(/\$\{([A-Z_]+)\}/g, (whole, name) => {
    const found = new RegExp(`const ${name} = (['"\`][^;]*?['"\`])\\n`).exec(text)
    return found?.[1] ?? whole
  })
}

export function lineOf(text: string, index: number): number {
  return text.slice(0, index).split('\n').length
}

export function sample(path: string, text: string): SourceFile {
  return { path, text }
}

export function readFolder(folder: string): SourceFile[] {
  let entries: Dirent[]
  try {
    entries = readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
  } catch {
    return []
  }
  return entries
    .filter((entry) => entry.isFile() && /\.(?:ts|sql)$/.test(entry.name))
    .filter((entry) => !/[\\/]node_modules(?:[\\/]|$)/.test(entry.parentPath))
    .map((entry) => join(entry.parentPath, entry.name))
    .map((file) => ({ file, path: relative(ROOT, file).replaceAll('\\', '/') }))
    .filter(({ path }) => !path.includes('node_modules/'))
    .map(({ file, path }) => ({ path, text: readFileSync(file, 'utf8') }))
}
