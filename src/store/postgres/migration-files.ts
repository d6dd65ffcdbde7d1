import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { OnlyonceError } from '../../core/errors.ts'
import { SHIPPED } from './migrations.generated.ts'

/** A file of SQL with a place in an order. */
export interface Migration {
  readonly version: number
  readonly name: string
  readonly text: string
  readonly checksum: string
  /** The newest migration that a process has to know to work with a schema that has this one. */
  readonly requires: number
}

interface MigrationFile {
  readonly name: string
  readonly text: string
}

/** The migrations of the library, in their order. They are text in the code: a bundle has no files to read. */
export function shippedMigrations(): readonly Migration[] {
  return inOrder(SHIPPED)
}

/** The migrations of a folder, in their order. Files with other endings are left alone. */
export async function readMigrations(place: URL): Promise<readonly Migration[]> {
  // Without a slash at its end a URL is that of a file, and names are looked for beside it.
  const folder = new URL(place.href.endsWith('/') ? place : `${place.href}/`)
  const names = (await readdir(folder)).filter((name) => name.endsWith('.sql')).sort()
  const texts = await Promise.all(names.map((name) => readFile(new URL(name, folder), 'utf8')))
  return inOrder(names.map((name, i) => ({ name, text: texts[i]! })))
}

function inOrder(files: readonly MigrationFile[]): readonly Migration[] {
  const migrations = files.map(migrationOf)
  for (const [i, { version, name }] of migrations.entries()) {
    if (version === migrations[i - 1]?.version) refuse(`Migration ${name} is misnamed: its number is taken.`)
  }
  return migrations
}

function migrationOf({ name, text: given }: MigrationFile): Migration {
  const version = Number(/^(\d{4})_[a-z0-9_]+\.sql$/.exec(name)?.[1])
  if (!(version >= 1)) refuse(`Migration ${name} is misnamed: 0001_name.sql, from 0001 on, in lower case.`)
  // Checked out on Windows, or not: the same migration.
  const text = given.replaceAll('\r\n', '\n')
  const said = /^-- requires: (.*)\n/.exec(text)?.[1] ?? '1'
  const requires = Number(said)
  if (!(Number.isInteger(requires) && requires >= 1 && requires <= version)) {
    refuse(`Migration ${name} requires ${said}, which is no version up to its own.`)
  }
  return { version, name, text, requires, checksum: createHash('sha256').update(text).digest('hex') }
}

function refuse(detail: string): never {
  throw new OnlyonceError('option_invalid', { detail })
}
