/** The command line as a door: its help, its arguments, its exit codes, and its streams. */
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { cliPage, PAGE } from '../../build/cli-help.ts'
import { COMMANDS } from '../../src/cli/commands.ts'
import { EXIT_MEANINGS } from '../../src/cli/exit.ts'
import { plain } from '../../src/cli/table.ts'
import { showDuration } from '../../src/cli/times.ts'
import { toWire } from '../../src/cli/wire.ts'
import { compiled } from '../setup/compiled.ts'
import { freshDatabase } from '../setup/database.ts'
import { waitUntil } from '../setup/wait.ts'
import { run } from './under-test.ts'

const page = readFileSync(new URL(`../../${PAGE}`, import.meta.url), 'utf8')
const NOWHERE = { DATABASE_URL: 'postgres://app:pass-w0rd@127.0.0.1:1/shop' }

test('docs/reference/cli.md has the help of every command, word for word: else run `npm run cli-help`', () => {
  expect(cliPage(page)).toBe(page)
  const rows = [...page.matchAll(/^\| (\d+) \| (.*) \|$/gm)].map(([, code, meaning]) => [
    Number(code),
    meaning,
  ])
  expect(rows).toEqual(EXIT_MEANINGS)
})

test.each(COMMANDS.map(({ name }) => name))(
  '%s tells its help, and asks no database for it',
  async (name) => {
    const { code, stdout } = await run([...name.split(' '), '--help'])
    expect(code).toBe(0)
    expect(stdout).toContain(`Usage: onlyonce ${name}`)
    expect((await run(['help', ...name.split(' ')])).stdout).toBe(stdout)
  },
)

test.each([
  [['lisst'], 'Did you mean list?'],
  [['outbox'], 'outbox is followed by one of: lag, parked, replay'],
  [['list', '--states', 'parked'], 'list has no option --states. Did you mean --state?'],
  [['list', '--state', 'parkd'], '--state is one of: in_progress, completed'],
  [['list', '--state'], '--state needs a value'],
  [['list', '--account', '--json'], '--account needs a value; write --account=--json'],
  [['list', '--failed=yes'], '--failed takes no value'],
  [['list', '--limit', '1', '--limit', '2'], '--limit is given twice'],
  [['list', '--older-than', '10'], '--older-than is a number with its unit'],
  [['list', '-s', 'parked'], 'list has no option -s'],
  [['explain', 'acct_1', 'orders.create'], 'explain takes <account> <operation> <key>; <key> is missing'],
  [['stuck', 'now'], 'stuck takes no arguments, and "now" is one too many'],
  [['issue-key', 'a', 'b', '--secret', 'x'], 'all users of a machine can see the arguments of a process'],
  [['issue-key', 'a', 'b'], 'ONLYONCE_SECRET is not set'],
  [['migrate', '--to', '999'], '--to is the number of a migration'],
  [['resolve', 'a', 'b', 'c-0123456', '--allow-retry', '--actor', 'ann'], '--reason is needed'],
  [['resolve', 'a', 'b', 'c-0123456', '--actor', 'ann', '--reason', 'x'], 'Give either --status'],
  [['completion', 'fish'], 'There is completion for bash and for zsh'],
  [['list'], 'No database is named'],
  [['list', '--database', 'shop'], 'connectionString is no address of a database'],
  [[], 'A command is needed'],
])('%j is refused with exit code 2, and a sentence that helps', async (args, sentence) => {
  const { code, stdout, stderr } = await run(args)
  expect(stderr).toContain(sentence)
  expect([code, stdout]).toEqual([2, ''])
})

test('what cannot be taken back is asked about on a terminal, and needs --yes where there is none', async () => {
  const args = ['resolve', 'a', 'b', 'c-0123456', '--allow-retry', '--actor', 'ann', '--reason', 'x']
  const piped = await run(args, { env: NOWHERE, stdin: 'yes\n' })
  expect([piped.code, piped.stderr]).toEqual([2, expect.stringContaining('give --yes')])
  const declined = await run(args, { env: NOWHERE, terminal: true, stdin: 'no\n' })
  expect([declined.code, declined.stderr]).toEqual([1, expect.stringContaining('Nothing was changed.')])
  // A caller that agrees comes as far as the database, which is not there.
  expect((await run(args, { env: NOWHERE, terminal: true, stdin: 'y\n' })).code).toBe(3)
  expect((await run([...args, '--yes'], { env: NOWHERE })).code).toBe(3)
})

test('a password, and a secret, are nowhere in what is printed', async () => {
  const secret = 'hush-hush: a secret of more than 32 bytes'
  const password = 'pass-w0rd'
  const database = `postgres://app:${password}@127.0.0.1:1/shop`
  const env = { ONLYONCE_SECRET: secret, ONLYONCE_DATABASE_URL: database }
  const away = await run(['list', '--json'], { env })
  expect(away.code).toBe(3)
  expect(JSON.parse(away.stderr)).toMatchObject({ error: { code: 'store_unavailable' } })
  // Arguments come back in what is printed, also where they stand by mistake.
  const said = [away]
  for (const args of [
    ['grants', '--role', secret],
    ['explain', secret],
    ['migrate', `--${secret}`],
    ['migrate', password, '--check'],
    ['stuck', password],
  ]) {
    said.push(await run(args, { env }))
  }
  expect(said.map(({ code }) => code)).toEqual([3, 0, 2, 2, 2, 2])
  const text = said.map(({ stdout, stderr }) => stdout + stderr).join('\n')
  expect(text).toContain('***')
  expect(text).not.toContain(password)
  expect(text).not.toContain('hush')
})

test('a ring that is none is refused without a word of it', async () => {
  const env = { ONLYONCE_SECRET: '{"current":"hush-hush"' }
  const { code, stderr } = await run(['issue-key', 'a', 'b'], { env })
  expect([code, stderr]).toEqual([2, expect.stringContaining('ONLYONCE_SECRET begins with { and is no ring')])
  expect(stderr).not.toContain('hush')
})

test('a text of the database gives a terminal no orders', () => {
  expect(plain('a\u001b[2Jb\u202ec\nd')).toBe('a\\u001b[2Jb\\u202ec d')
})

test('times and names are what programs expect', () => {
  expect(toWire({ createdAt: 0, inDoubt: { since: 1 }, oldestAgeMs: 5 })).toEqual({
    created_at: '1970-01-01T00:00:00.000Z',
    in_doubt: { since: '1970-01-01T00:00:00.001Z' },
    oldest_age_ms: 5,
  })
  expect([0, 999, 60_000, 93_000, 90_061_000].map(showDuration)).toEqual([
    '0ms',
    '999ms',
    '1m',
    '1m 33s',
    '1d 1h',
  ])
})

test.each(['bash', 'zsh'])('completion for %s names every command and option', async (shell) => {
  const { code, stdout } = await run(['completion', shell])
  expect(code).toBe(0)
  for (const { name, options } of COMMANDS) {
    const line = stdout.split('\n').find((one) => one.trim().startsWith(`"${name}")`))
    for (const option of options) expect(line).toContain(`--${option.name}`)
  }
})

test('bash takes the script, and completes', async () => {
  const { stdout: script } = await run(['completion', 'bash'])
  const ask = `${script}\nCOMP_WORDS=(onlyonce outbox la); COMP_CWORD=2; _onlyonce; echo "\${COMPREPLY[@]}"
COMP_WORDS=(onlyonce list --state pa); COMP_CWORD=3; _onlyonce; echo "\${COMPREPLY[@]}"
COMP_WORDS=(onlyonce migrate --ch); COMP_CWORD=2; _onlyonce; echo "\${COMPREPLY[@]}"`
  expect((await child('bash', ['-c', ask])).stdout).toBe('lag\nparked\n--check\n')
})

/** A real process, and how it ended. */
function child(file: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const started = spawn(file, args, {
    env: { PATH: process.env.PATH ?? '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let [stdout, stderr] = ['', '']
  started.stdout.on('data', (part) => (stdout += part))
  started.stderr.on('data', (part) => (stderr += part))
  const ended = new Promise<{ code: number | null; stdout: string; stderr: string }>((resolve) => {
    started.on('close', (code) => resolve({ code, stdout, stderr }))
  })
  return Object.assign(ended, { kill: (signal: NodeJS.Signals) => started.kill(signal) })
}

const BIN = new URL('../../src/cli/bin.ts', import.meta.url)

test('as a process it ends with its exit code, and leaves nothing open', async () => {
  const bin = compiled(BIN)
  expect(await child(process.execPath, [bin, '--version'])).toMatchObject({ code: 0, stderr: '' })
  expect(await child(process.execPath, [bin, 'stuck'], NOWHERE)).toMatchObject({
    code: 3,
    stderr: expect.stringContaining('ECONNREFUSED'),
  })
})

test('SIGINT ends it with 130 behind what it is at, and what was done stands', async () => {
  const database = await freshDatabase()
  const observer = database.direct({ max: 2 })
  await observer.query(`INSERT INTO onlyonce.records
    (account, operation, key, state, fence, attempt_id, owner, attempted_at, fingerprint, fingerprint_key_id,
     created_at, changed_at, expires_at, reply_status, reply_headers, reply_body, reply_schema)
    SELECT 'a', 'b', 'key-' || n, 'completed', 1, gen_random_uuid(), 'x', now(), '', 'default',
      now(), now() - interval '1 day', now() - interval '1 day', 200, '[]', '', 1
    FROM generate_series(1, 2500) AS n`)
  const holder = await observer.connect()
  await holder.query('BEGIN; LOCK TABLE onlyonce.records IN ACCESS EXCLUSIVE MODE')
  const reaping = child(process.execPath, [compiled(BIN), 'reap', '--json'], {
    DATABASE_URL: database.serverUrl,
  })
  await waitUntil('it waits for the table', async () => {
    const { rows } = await observer.query(
      `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    )
    return rows.length > 0
  })
  reaping.kill('SIGINT')
  await holder.query('COMMIT')
  holder.release()
  const { code, stdout } = await reaping
  expect(code).toBe(130)
  const { removed } = JSON.parse(stdout)
  const left = await observer.query('SELECT count(*)::int AS count FROM onlyonce.records')
  expect(removed + left.rows[0].count).toBe(2500)
  expect(removed).toBeLessThan(2500)
})
