/** What is public, by the doors in package.json, and what the doc comments of it say. */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** A name that a door exports, and the text that declares it, with the comment before it. */
export interface Exported {
  readonly name: string
  /** As it is imported: `onlyonce/outbox`. */
  readonly door: string
  readonly file: string
  readonly line: number
  readonly kind: 'value' | 'type'
  readonly comment: string
  /** From the comment to the end of the declaration: comments of members are in it. */
  readonly text: string
}

/** The doors, each with the file that it leads to. */
export function doors(): Readonly<Record<string, string>> {
  const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    exports: Record<string, unknown>
  }
  return Object.fromEntries(
    Object.entries(exports).flatMap(([door, to]) => {
      const source = /dist\/esm\/([\w/-]+)\.d\.ts/.exec(JSON.stringify(to))?.[1]
      return source === undefined ? [] : [[`onlyonce${door.slice(1)}`, join(ROOT, `src/${source}.ts`)]]
    }),
  )
}

/** Every name that is exported, of all doors. A name that two doors export is there twice. */
export function publicExports(): readonly Exported[] {
  return Object.entries(doors()).flatMap(([door, file]) =>
    [...namesOf(file)].map(([name, at]) => declarationOf(name, at.file, at.name, door)),
  )
}

/** The names of a file, and where each is declared. */
function namesOf(file: string): Map<string, { readonly file: string; readonly name: string }> {
  const text = readFileSync(file, 'utf8')
  const found = new Map<string, { file: string; name: string }>()
  for (const [, list = '', from = ''] of text.matchAll(/^export (?:type )?\{([^}]*)\} from '([^']+)'/gm)) {
    for (const item of list
      .split(',')
      .map((one) => one.trim().replace(/^type /, ''))
      .filter(Boolean)) {
      const [name = '', as = name] = item.split(' as ')
      const inner = namesOf(join(dirname(file), from)).get(name)
      if (inner === undefined) throw new Error(`${file} exports ${name}, which ${from} does not have.`)
      found.set(as, inner)
    }
  }
  for (const declared of text.matchAll(DECLARED)) found.set(declared[2]!, { file, name: declared[2]! })
  for (const [, from = ''] of text.matchAll(/^export \* from '([^']+)'/gm)) {
    for (const [name, at] of namesOf(join(dirname(file), from))) found.set(name, at)
  }
  return found
}

const DECLARED =
  /^export (?:declare )?(?:abstract )?(?:async )?(function|class|interface|type|const)\*? (\w+)/gm

function declarationOf(name: string, file: string, declared: string, door: string): Exported {
  const text = readFileSync(file, 'utf8')
  const found = [...text.matchAll(DECLARED)].find((one) => one[2] === declared)!
  const before = text.slice(0, found.index)
  const comment = /\/\*\*(?:(?!\*\/)[\s\S])*\*\/\n(?:\/\/[^\n]*\n)*$/.exec(before)?.[0] ?? ''
  const rest = text.slice(found.index)
  // A declaration at the top of a file ends with the first line that begins with its closing bracket, or with an empty line.
  const end = /\n[})\]]|\n\n/.exec(rest)?.index ?? rest.length
  const start = found.index - comment.length
  return {
    name,
    door,
    file: file.slice(ROOT.length),
    line: text.slice(0, start).split('\n').length,
    kind: found[1] === 'interface' || found[1] === 'type' ? 'type' : 'value',
    comment,
    text: `${comment}${rest.slice(0, /^\n[})\]]/.test(rest.slice(end)) ? end : blockEnd(rest))}`,
  }
}

/** Members are indented, and empty lines stand between them: the end is the first bracket in the first column. */
function blockEnd(rest: string): number {
  const first = rest.split('\n')[0]!
  if (!/[{(]\s*$/.test(first)) return /\n\n|\n$/.exec(rest)?.index ?? rest.length
  return /\n[})\]]/.exec(rest)?.index ?? rest.length
}

/** The examples in the comments of a declaration and of its members, without the stars. */
export function examplesOf({
  text,
  line,
}: Exported): readonly { readonly line: number; readonly source: string }[] {
  return [...text.matchAll(/\/\*\*[\s\S]*?\*\//g)].flatMap((comment) => {
    const lines = comment[0]
      .split('\n')
      .map((one) => one.replace(/^\s*(?:\/\*\*|\*\/|\* ?)/, '').replace(/\*\/$/, ''))
    const at = line + text.slice(0, comment.index).split('\n').length - 1
    const starts = lines.flatMap((one, i) => (/^@example\b/.test(one) ? [i] : []))
    return starts.map((start) => {
      const next = lines.findIndex((one, i) => i > start && /^@\w/.test(one))
      return {
        line: at + start + 1,
        source: lines
          .slice(start + 1, next === -1 ? lines.length : next)
          .join('\n')
          .trim(),
      }
    })
  })
}
