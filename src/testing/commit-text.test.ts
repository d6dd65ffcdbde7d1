import { describe, expect, it } from 'vitest'
import { containsCommit } from './commit-text.ts'

describe('containsCommit', () => {
  it.each([
    'COMMIT',
    'commit;',
    '  \n commit work',
    'COMMIT AND CHAIN',
    'END',
    'end transaction',
    'COMMIT /* traceparent=00-abc */',
    '/* a /* nested */ comment */ COMMIT',
    '-- a comment\nCOMMIT',
    "INSERT INTO t VALUES ('x'); COMMIT",
    "SELECT 'it''s'; COMMIT",
    "SELECT E'a\\'; b'; COMMIT",
    'SELECT $$ ; $$; COMMIT',
    'SELECT $1; COMMIT',
    ';;commit',
  ])('finds the commit in %j', (sql) => {
    expect(containsCommit(sql)).toBe(true)
  })

  it.each([
    "SELECT 'COMMIT'",
    "SELECT '; COMMIT'",
    "SELECT 'a''; COMMIT'",
    "SELECT E'\\'; COMMIT'",
    'SELECT "; COMMIT"',
    'SELECT $$; COMMIT$$',
    'SELECT $tag$; COMMIT; $$; COMMIT $tag$',
    '/* ; COMMIT */ SELECT 1',
    '/* /* */ ; COMMIT; */ SELECT 1',
    '-- ; COMMIT',
    'SELECT commit FROM t',
    'commits',
    'commit_log',
    'endpoint',
    'ROLLBACK',
    'SELECT CASE WHEN true THEN 1 END',
    'CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; END',
    "SELECT 'not closed; COMMIT",
    '',
  ])('finds none in %j', (sql) => {
    expect(containsCommit(sql)).toBe(false)
  })

  it('reads a long text in time that grows with its length', () => {
    expect(containsCommit(`SELECT '${"''".repeat(100_000)}'; ${'/*'.repeat(50_000)} COMMIT`)).toBe(false)
  })
})
