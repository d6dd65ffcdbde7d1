import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { EMBEDDED, embedMigrations } from '../build/embed-migrations.ts'
import { ERRORS } from '../src/core/errors.ts'
import { LIMITS } from '../src/core/limits.ts'
import { importsOf, isTest, roomOf, within } from './setup/paths.ts'
import { MAY_IMPORT, OPTIONAL, READS_THROWN } from './setup/rooms.ts'
import { blank, expand, lineOf, literals, readFolder, type SourceFile, sample } from './setup/source-text.ts'

/**
 * Habits that a machine can check. A rule looks at files and tells what is wrong with them, one line each.
 * Every rule is also shown samples that it has to catch: a rule that cannot fail checks nothing.
 */
type Rule = (files: readonly SourceFile[]) => string[]

const FILES = ['src', 'test', 'bench', 'build', 'examples', 'migrations', 'apps']
  .flatMap(readFolder)
  .filter(({ path }) => path !== EMBEDDED)

const LINES_MAX = 500
const TEST_LINES_MAX = 600

/**
 * They bound waiting, the age of files and of issued keys, and tell how long calls took; only the memory store's
 * records depend on what is read here. An issued key is judged before the database is asked anything, with an
 * allowance for clocks that differ. The time in an event's id orders nothing. So is the age of a webhook that comes in.
 */
const CLOCKS_ALLOWED = [
  'src/core/retry.ts',
  'src/onlyonce/issuer.ts',
  'src/store/event-id.ts',
  'src/observe/stopwatch.ts',
  'src/webhooks/clock.ts',
  'src/client/clock.ts',
  'src/cli/times.ts',
  'src/testing/',
  'src/store/embedded/',
  'src/store/memory/index.ts',
]

/** The error that says it, and the writes that prove it. */
const PROVERS = ['src/core/errors.ts', 'src/protect/proof.ts']

/** Codes that are promised in the table before anything raises them. Whoever raises one takes it off the list. */
const CODES_AHEAD: readonly string[] = []

/** What the rooms without I/O may import from outside. */
const PURE_ROOMS = ['core', 'key', 'fingerprint', 'record', 'seal']
/** Waiting, which `core/retry.ts` does, is no I/O. */
const PURE_PACKAGES = [
  'node:crypto',
  'node:buffer',
  'node:util',
  'node:timers/promises',
  'canonicalize',
  'structured-headers',
]

/** The list of key ids, the secret of a service that was given none, and the books of the relay, which are about events of all accounts. */
const OF_NO_ACCOUNT = /CREATE TABLE (?:key_ids|made_secrets|lanes|batches|cursors) \([\s\S]*?\n\)[^;]*;/g

const SQL_FOLDER = 'src/store/postgres/sql/'
const SQL_ALLOWED = [
  SQL_FOLDER,
  'src/store/postgres/migrate.ts',
  'src/store/postgres/within.ts',
  'src/rate-limits/sql.ts',
]
const SQL = /\bSELECT\b[\s\S]*\bFROM\b|\bINSERT\s+INTO\b|\bUPDATE\b[\s\S]*\bSET\b|\bDELETE\s+FROM\b/
/** In small letters only at the start of a text: in the middle they may be English. */
const SQL_START = /^['"`]\s*(?:select\s[\s\S]*\sfrom|insert\s+into|update\s[\s\S]*\sset|delete\s+from)\s/i
/** The schema, a table of ours, a constant, columns, a duration, a transaction, the number of a SET, a statement of ours: none of them comes from a caller. */
const INTERPOLATED =
  /^(?:schema|table|ms|recordColumns|[A-Z][A-Z_]*(?:\.join\(', '\))?|(?:interval|isInside)\('\$\d+'\)|ageOf\('[a-z_()]+'\)|lifeOf\(schema, 'r'\)|insertEvidence\(schema\))$/
/** Where the lists of columns are made. */
const SQL_PARTS = `${SQL_FOLDER}columns.ts`

const RULES: Readonly<Record<string, { rule: Rule; caught: readonly SourceFile[] }>> = {
  'a file can be read in one sitting': {
    rule: findLong,
    caught: [
      sample('src/long.ts', '\n'.repeat(LINES_MAX + 1)),
      sample('test/long.test.ts', '\n'.repeat(TEST_LINES_MAX + 1)),
    ],
  },
  'no test is left out, or left alone': {
    rule: (files) => findCode(files, /\.(?:only|skip|todo)\(/),
    caught: ['it.only("a")', 'describe.skip("a")', 'test\n  .todo("a")'].map((text) =>
      sample('src/a.test.ts', text),
    ),
  },
  'time comes from the database': {
    rule: (files) =>
      findCode(
        files.filter(({ path }) => path.startsWith('src/') && !isTest(path) && !within(path, CLOCKS_ALLOWED)),
        /\bDate\.now\b|\bnew\s+Date\s*\(|\bperformance\.now\b|\bhrtime\b/,
      ),
    caught: [
      sample('src/record/a.ts', 'const at = Date.now()'),
      sample('src/store/postgres/a.ts', 'if (lease < new Date()) steal()'),
      sample('src/protect/a.ts', 'const clock = performance.now'),
    ],
  },
  'dependencies point downward': {
    rule: findUpward,
    caught: [
      sample('src/record/a.ts', `import { a } from '../store/contract.ts'`),
      sample('src/key/a.ts', `import { readFile } from 'node:fs/promises'`),
      sample('src/fingerprint/a.ts', `import pg from 'pg'`),
      sample('src/store/memory/a.ts', `import type { A } from '../../protect/a.ts'`),
      sample('src/protect/a.ts', `const a = await import('../http/a.ts')`),
      sample('src/protect/b.ts', `export * from '../testing/index.ts'`),
      sample('src/core/errors.ts', `import '../key/index.ts'`),
      sample('src/protect/c.ts', `import { runOperation } from '../operation/run-operation.ts'`),
      sample('src/http/a.ts', `import { said } from './adapters/said.ts'`),
      sample('src/attic/a.ts', ''),
    ],
  },
  'packages that not everybody has stand behind a door of their own': {
    rule: findOptionalPackages,
    caught: [
      sample('src/observe/log.ts', `import { register } from 'prom-client'`),
      sample('src/onlyonce/onlyonce.ts', `const { trace } = await import('@opentelemetry/api')`),
      sample('src/index.ts', `export { prometheus } from './observe/prometheus.ts'`),
      sample('src/http/adapters/fetch/index.ts', `import { matchedRoutes } from 'hono/route'`),
      sample('src/http/adapters/fetch/index.ts', `import { routeOf } from '../hono/route.ts'`),
      sample(
        'src/http/adapters/node/serve.ts',
        `import { PATH_METADATA } from '@nestjs/common/constants.js'`,
      ),
      sample('src/http/adapters/node/a.ts', `import { of } from 'rxjs/operators'`),
      sample('src/http/a.ts', `import { rateLimit } from '../rate-limits/index.ts'`),
      sample('src/index.ts', `export { Idempotent } from './http/adapters/nest/index.ts'`),
      sample('src/http/adapters/node/a.ts', `import { fastify } from 'fastify'`),
    ],
  },
  'account leads every key of every table': {
    rule: findKeysWithoutAccount,
    caught: [
      'CREATE TABLE a (id uuid PRIMARY KEY)',
      'CREATE TABLE a (id uuid, account text, PRIMARY KEY (id, account))',
      'ALTER TABLE a ADD FOREIGN KEY (operation, account) REFERENCES records',
      'CREATE TABLE a (account text, record uuid REFERENCES records, PRIMARY KEY (account))',
    ].map((text) => sample('migrations/0009_a.sql', text)),
  },
  'rows are locked inside one account': {
    rule: findLocksOverAccounts,
    caught: [
      sample('src/store/a.ts', 'const a = `SELECT * FROM records WHERE state = $1 FOR UPDATE SKIP LOCKED`'),
      sample(
        'src/store/a.ts',
        'const a = `SELECT * FROM a, b WHERE a.account = b.account FOR NO KEY UPDATE`',
      ),
      sample(
        'src/store/a.ts',
        'const a = `UPDATE b SET c = 1 WHERE account = $1; SELECT * FROM b FOR UPDATE`',
      ),
      sample('migrations/0009_a.sql', 'SELECT * FROM records WHERE key = $1 FOR SHARE'),
    ],
  },
  'SQL has its own files, and takes values as parameters': {
    rule: (files) => [...findStraySql(files), ...findInterpolation(files)],
    caught: [
      sample('src/protect/a.ts', 'tx.query(`SELECT * FROM records WHERE key = $1`)'),
      sample('src/store/postgres/a.ts', `tx.query('insert into records values ($1)')`),
      sample('src/store/postgres/a.ts', 'tx.query(`UPDATE records\nSET state = $1`)'),
      sample(`${SQL_FOLDER}a.ts`, `export const a = (key) => \`SELECT 1 FROM b WHERE key = \${key}\``),
      sample(`${SQL_FOLDER}a.ts`, "export const a = (key) => 'SELECT 1 FROM b WHERE key = ' + key"),
      sample('src/store/postgres/within.ts', `tx.query(\`SELECT 1 FROM b WHERE key = \${id.key}\`)`),
    ],
  },
  'types are not silenced': {
    rule: (files) => [
      ...findCode(files, /\bas\s+any\b/),
      ...findIn(files, /(?:\/\/|\*)\s*@ts-(?:ignore|nocheck)\b/, ({ text }) =>
        blank(text, ['text', 'regexp']),
      ),
    ],
    caught: ['const a = b as any', '// @ts-ignore\na()', '/* @ts-nocheck */'].map((text) =>
      sample('test/a.ts', text),
    ),
  },
  'every error has a proper code and sentence, and is raised somewhere': {
    rule: (files) => findBadErrors(files, ERRORS),
    // Without any file that raises them, all codes are dead.
    caught: [sample('src/a.ts', '')],
  },
  'that nothing was executed is proved in one place': {
    rule: (files) =>
      findCode(
        files.filter(({ path }) => path.startsWith('src/') && !isTest(path) && !PROVERS.includes(path)),
        /\bas\s+Proof\b|\bproveStatement\b/,
      ),
    caught: [
      sample('src/store/a.ts', 'const a = {} as Proof'),
      sample('src/http/a.ts', `import { proveStatement } from '../errors.ts'`),
    ],
  },
  'a thrown value is read where reading cannot throw': {
    rule: (files) =>
      findCode(
        files.filter(({ path }) => path.startsWith('src/') && !isTest(path) && !within(path, READS_THROWN)),
        /\b(?:error|cause|thrown|reason|failure)\s+instanceof\s+(?!OnlyonceError\b)\w+|\bin\s+(?:error|cause|thrown)\b(?!\.)|\b(?:error|cause|thrown) as \{/,
      ),
    caught: ['error instanceof Stopped', `'code' in error`, '(error as { code?: unknown }).code'].map(
      (text) => sample('src/protect/a.ts', `if (${text}) stop()`),
    ),
  },
  'every limit is a limit of something': {
    rule: (files) => findUnusedLimits(files, LIMITS),
    caught: [sample('src/a.ts', '')],
  },
}

describe.each(Object.entries(RULES))('%s', (_, { rule, caught }) => {
  it('in all files', () => expect(rule(FILES)).toEqual([]))
  it.each(caught)('or the rule says so: $path $text', (bad) => expect(rule([bad])).not.toEqual([]))
})

describe('the rules about names', () => {
  const everywhere = sample('src/a.ts', `'Bad-Code' 'no_period' 'good_code' LIMITS.used_max`)
  it('see a bad code, a bad sentence and a dead code, each by itself', () => {
    const table = { 'Bad-Code': { message: 'A.' }, no_period: { message: 'A' }, dead_code: { message: 'A.' } }
    for (const [code, entry] of Object.entries(table)) {
      expect(findBadErrors([everywhere], { [code]: entry })).toHaveLength(1)
    }
    expect(findBadErrors([everywhere], { good_code: { message: 'Do it.' } })).toEqual([])
  })
  it('see a limit that only a test uses', () => {
    const test = sample('src/a.test.ts', 'LIMITS.idle_max')
    expect(findUnusedLimits([everywhere, test], { used_max: 1, idle_max: 2 })).toEqual([
      'idle_max is not used',
    ])
  })
  it('still need every code that is said to come later', () => {
    const said = literalsOf(FILES, 'errors')
    expect(CODES_AHEAD.filter((code) => said.has(`'${code}'`))).toEqual([])
  })
})

describe('the migrations in the code', () => {
  it('are the files in migrations/: else run `npm run migrations`', () => {
    expect(readFolder('src').find(({ path }) => path === EMBEDDED)?.text).toBe(embedMigrations('.'))
  })
})

describe('the rules about text', () => {
  it('look through comments, strings and regular expressions', () => {
    const text = `const a = /['"\`]/g // it's\nconst b = "//" /* \` */ + \`\${c}'\``
    expect(literals(text)).toEqual(['"//"', `\`\${c}'\``])
    expect(findCode([sample('a.ts', `// it.only(\nconst a = 'it.only('`)], /\.only\(/)).toEqual([])
  })
  it('find the files', () => {
    const paths = FILES.map(({ path }) => path)
    expect(paths).toEqual(
      expect.arrayContaining([
        'src/index.ts',
        'test/tidy.test.ts',
        'migrations/0001_records.sql',
        'apps/gateway/index.ts',
      ]),
    )
  })
})

function findLong(files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path, text }) => {
    const lines = text.split('\n').length - 1
    const max = isTest(path) ? TEST_LINES_MAX : LINES_MAX
    return lines > max ? [`${path} has ${lines} lines, more than ${max}`] : []
  })
}

/** Looks at the code alone, without comments, texts and regular expressions. */
function findCode(files: readonly SourceFile[], pattern: RegExp): string[] {
  return findIn(files, pattern, ({ text }) => blank(text, ['comment', 'text', 'regexp']))
}

function findIn(files: readonly SourceFile[], pattern: RegExp, view: (file: SourceFile) => string): string[] {
  return files
    .filter(({ path }) => path.endsWith('.ts'))
    .flatMap((file) => {
      const text = view(file)
      const found = [...text.matchAll(new RegExp(pattern, 'g'))]
      return found.map(({ 0: what, index }) => `${file.path}:${lineOf(text, index)} ${what.trim()}`)
    })
}

function findUpward(files: readonly SourceFile[]): string[] {
  return files
    .filter(({ path }) => path.startsWith('src/') && path.endsWith('.ts') && !isTest(path))
    .flatMap(({ path, text }) => {
      const room = roomOf(path)
      const allowed = MAY_IMPORT[room]
      if (allowed === undefined) return [`${path} is in a room that the table does not know`]
      const imports = importsOf(text)
      const isAllowed = (name: string) => {
        if (!name.startsWith('.')) return !PURE_ROOMS.includes(room) || PURE_PACKAGES.includes(name)
        const target = roomOf(join(path, '..', name))
        return target === room || allowed.includes(target)
      }
      return imports.filter((name) => !isAllowed(name)).map((name) => `${path} imports ${name}`)
    })
}

function findOptionalPackages(files: readonly SourceFile[]): string[] {
  const doorOf = (path: string, name: string) =>
    name.startsWith('.')
      ? Object.values(OPTIONAL).find((door) => within(join(path, '..', name), [door]))
      : OPTIONAL[/^(?:@[^/]+\/)?[^/]+/.exec(name)![0]]
  return files
    .filter(({ path }) => path.startsWith('src/') && path.endsWith('.ts') && !isTest(path))
    .flatMap(({ path, text }) => {
      const strays = importsOf(text).filter((name) => !within(path, [doorOf(path, name) ?? path]))
      return strays.map((name) => `${path} imports ${name}`)
    })
}

function findKeysWithoutAccount(files: readonly SourceFile[]): string[] {
  return files
    .filter(({ path }) => path.startsWith('migrations/'))
    .flatMap(({ path, text }) => {
      const sql = text.replace(/--.*/g, '')
      const keys = sql
        .replace(OF_NO_ACCOUNT, '')
        .matchAll(/\b(?:PRIMARY|FOREIGN)\s+KEY\b(?:\s*\(\s*(\w+))?/gi)
      const wrong = [...keys].filter((key) => key[1] !== 'account').map((key) => key[0])
      // A column's own REFERENCES is a foreign key of one column, which account cannot lead.
      const inline = sql.match(/(?<!\bKEY\s*\([^)]*\)\s*)\bREFERENCES\s+\w+/gi) ?? []
      return [...wrong, ...inline].map((what) => `${path} ${what}`)
    })
}

function findLocksOverAccounts(files: readonly SourceFile[]): string[] {
  return files
    .filter(({ path }) => (path.startsWith('src/') && !isTest(path)) || path.endsWith('.sql'))
    .flatMap(({ path, text }) => {
      const statements = path.endsWith('.sql')
        ? [text]
        : literals(text).map((literal) => expand(literal, text))
      return statements
        .flatMap((statement) => statement.split(';'))
        .flatMap((statement) => [
          ...statement.matchAll(/\bFOR\s+(?:NO\s+KEY\s+)?(?:UPDATE|SHARE)\b|\bSKIP\s+LOCKED\b/g),
        ])
        .filter(
          ({ index, input }) =>
            !/\bWHERE\b(?:(?!\bSELECT\b)[\s\S])*\baccount\s*=\s*\$\d(?:(?!\bSELECT\b)[\s\S])*$/.test(
              input.slice(0, index),
            ),
        )
        .map((found) => `${path} ${found[0]} over all accounts`)
    })
}

function findStraySql(files: readonly SourceFile[]): string[] {
  return files
    .filter(({ path }) => path.startsWith('src/') && !isTest(path) && !within(path, SQL_ALLOWED))
    .flatMap(({ path, text }) =>
      literals(text)
        .filter(isSql)
        .map((literal) => `${path} ${literal.slice(0, 60)}`),
    )
}

function findInterpolation(files: readonly SourceFile[]): string[] {
  return files
    .filter(({ path }) => within(path, SQL_ALLOWED) && path !== SQL_PARTS)
    .flatMap(({ path, text }) => {
      const statements = literals(text).filter((literal) => path.startsWith(SQL_FOLDER) || isSql(literal))
      const parts = statements.flatMap((literal) =>
        [...literal.matchAll(/\$\{([^}]*)\}/g)].map((found) => found[1]!),
      )
      const wrong = parts.filter((part) => !INTERPOLATED.test(part)).map((part) => `${path} \${${part}}`)
      const code = path.startsWith(SQL_FOLDER) ? blank(text, ['comment', 'text']) : ''
      return code.includes('+') ? [...wrong, `${path} puts texts together with +`] : wrong
    })
}

function findBadErrors(
  files: readonly SourceFile[],
  table: Readonly<Record<string, { readonly message: string }>>,
): string[] {
  const said = literalsOf(files, 'errors')
  return Object.entries(table).flatMap(([code, { message }]) => [
    ...(/^[a-z][a-z0-9]*(?:_[a-z0-9]+)*$/.test(code) ? [] : [`${code} is not in snake_case`]),
    ...(message.endsWith('.') ? [] : [`the message of ${code} does not end with a period`]),
    ...(said.has(`'${code}'`) || CODES_AHEAD.includes(code) ? [] : [`${code} is never raised`]),
  ])
}

function literalsOf(files: readonly SourceFile[], except: string): ReadonlySet<string> {
  return new Set(files.flatMap(({ path, text }) => (isSource(path, except) ? literals(text) : [])))
}

/** A limit is used by its name, or, where a file takes limits by name, by that name in a text. */
function findUnusedLimits(files: readonly SourceFile[], limits: Readonly<Record<string, unknown>>): string[] {
  const used = new Set<string>()
  for (const { text } of files.filter(({ path }) => isSource(path, 'limits'))) {
    const code = blank(text, ['comment'])
    for (const [, name] of code.matchAll(/\bLIMITS\.(\w+)/g)) used.add(name!)
    if (code.includes('LIMITS[')) for (const literal of literals(code)) used.add(literal.slice(1, -1))
  }
  return Object.keys(limits)
    .filter((name) => !used.has(name))
    .map((name) => `${name} is not used`)
}

function isSource(path: string, except: string): boolean {
  return path.startsWith('src/') && !isTest(path) && path !== `src/${except}.ts`
}

function isSql(literal: string): boolean {
  return SQL.test(literal) || SQL_START.test(literal)
}
