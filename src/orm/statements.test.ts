import { describe, expect, it } from 'vitest'
import { meaningOf } from './statements.ts'

const kindOf = (text: string) => {
  const meaning = meaningOf(text)
  return meaning.kind === 'refused' ? meaning.error.code : meaning.kind
}

describe('what a text means for its transaction', () => {
  it.each([
    [
      'begin',
      [
        'BEGIN',
        'begin;',
        'Begin Work',
        'BEGIN TRANSACTION ;',
        'START TRANSACTION',
        '/* a */ BEGIN -- b',
        ' \n begin',
      ],
    ],
    [
      'begin',
      ['BEGIN ISOLATION LEVEL SERIALIZABLE', 'start transaction isolation level repeatable read, read only'],
    ],
    ['commit', ['COMMIT', 'commit;', 'END', 'COMMIT WORK', 'COMMIT AND NO CHAIN', '-- a\nCOMMIT']],
    ['rollback', ['ROLLBACK', 'rollback;', 'ABORT', 'ROLLBACK TRANSACTION']],
    [
      'savepoint',
      [
        'SAVEPOINT a',
        'RELEASE a',
        'RELEASE SAVEPOINT "a;b"',
        'ROLLBACK TO a',
        'rollback work to savepoint a;',
      ],
    ],
    [
      'modes',
      [
        'SET TRANSACTION ISOLATION LEVEL SERIALIZABLE',
        'SET TRANSACTION READ ONLY',
        'set local transaction read write',
      ],
    ],
    [
      'transaction_control_refused',
      [
        'COMMIT AND CHAIN',
        'ROLLBACK AND CHAIN',
        "COMMIT PREPARED 'a'",
        "PREPARE TRANSACTION 'a'",
        'BEGIN; SELECT 1',
        'SELECT 1; COMMIT',
        "SELECT ';'; ROLLBACK",
        'SELECT 1; SAVEPOINT a',
        "SELECT E'\\'; COMMIT --'; COMMIT",
      ],
    ],
    [
      'isolation_refused',
      [
        'BEGIN DEFERRABLE',
        "SET TRANSACTION SNAPSHOT 'a'",
        'START TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ ONLY, DEFERRABLE',
      ],
    ],
    [
      'statement_refused',
      [
        'LISTEN a',
        'unlisten *',
        'COPY a FROM STDIN',
        '/* a */ copy (SELECT 1) to stdout',
        'SET search_path TO a',
        "SET TIME ZONE 'UTC'",
        'SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY',
        'set session statement_timeout = 1',
        'RESET ALL',
        'DISCARD ALL',
        'DEALLOCATE ALL',
        'DECLARE a CURSOR WITH HOLD FOR SELECT 1',
        'SELECT pg_advisory_lock(1)',
        'select pg_try_advisory_lock_shared($1, $2)',
        'SELECT pg_advisory_unlock_all()',
        "SELECT set_config('a.b', 'c', false)",
        "SELECT set_config('a.b', $1,false)",
        'SELECT 1; SET a.b = 1',
      ],
    ],
    [
      'plain',
      [
        '',
        ';',
        'SELECT 1',
        'SELECT 1;',
        'SELECT 1; SELECT 2;',
        'SET LOCAL search_path TO a',
        'SET CONSTRAINTS ALL DEFERRED',
        'SELECT pg_advisory_xact_lock(1), pg_try_advisory_xact_lock(2)',
        "SELECT set_config('a.b', 'c', true)",
        'DECLARE a CURSOR FOR SELECT 1',
        'NOTIFY a',
        'PREPARE a AS SELECT 1',
        'UPDATE a SET b = 1',
        'INSERT INTO commits VALUES (1)',
        // Some ORMs put values into the text itself.
        "INSERT INTO a VALUES ('; COMMIT; pg_advisory_lock(1)')",
        "INSERT INTO a VALUES (E'\\'; COMMIT')",
        "INSERT INTO a VALUES ('it''s; ROLLBACK')",
        'SELECT 1 AS "; COMMIT"',
        'SELECT $$; COMMIT$$, $a$; ROLLBACK $$ $a$',
        'SELECT 1 -- ; COMMIT',
        'SELECT 1 /* ; COMMIT */',
        'CREATE FUNCTION a() RETURNS int LANGUAGE sql AS $$ SELECT 1; SELECT 2 $$',
      ],
    ],
  ])('%s', (kind, texts) => {
    for (const text of texts) expect([text, kindOf(text)]).toEqual([text, kind])
  })

  it('tells the level and the access that are asked for', () => {
    expect(meaningOf('begin isolation level Repeatable  Read, read only')).toMatchObject({
      modes: { isolation: 'repeatable read', readOnly: true },
    })
    expect(meaningOf('SET TRANSACTION READ WRITE')).toMatchObject({
      modes: { isolation: null, readOnly: false },
    })
  })
})
