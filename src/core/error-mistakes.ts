/**
 * What is wrong with the service itself: its code, its settings, or what it works with. The client of an API can do nothing about it, and is
 * told only what that means for its key. The sentence for the developer is the message of the error, and is told in the log and on stderr.
 */
import { type ErrorEntry, told } from './error-entry.ts'

/** Nothing was begun: after the repair the same request with the same key runs. */
const NOT_STARTED =
  'The service cannot take this request as it is set up; this request started nothing. An earlier request with this key may have. Send the same request with the same key again later, when the service is repaired.'

/** It may be in the middle of the work that the mistake shows. */
const IN_DOUBT =
  'The service has made a mistake, and whether the request took effect is not known. Contact support; do not use a new key.'

export const MISTAKES = {
  ...told(503, true, 'not_by_this_request', NOT_STARTED, {
    key_signer_unknown: 'The key names a secret that is not in the key ring. Add it there.',
    clocks_disagree:
      'The idempotency key expires later than any issued key can: the clock of this process, or of the one that issued it, is wrong. Set it right.',
    fingerprint_key_unknown:
      'The record was fingerprinted with a key that this process does not have. Add it to the key ring.',
    operation_unknown:
      'The record was begun by a version of the operation that this process does not know, so this request did not go on with it. Pass that version to onlyonce({ operations }) too.',
  }),
  ...told(500, true, 'not_by_this_request', NOT_STARTED, {
    key_ring_incomplete:
      'Records that are still needed name keys that this process does not have. Add these to the key ring, and start again.',
    layer_twice:
      'The idempotency layer stands twice before this handler, and the two ask for different things. Keep one of them: that of the application or that of the route. A request that a handler makes itself needs a key of its own, such as derivedKey.',
    operation_missing:
      "The idempotency layer sees no pattern of a route here, so what the request does needs a name. Pass operation, for example { operation: 'payments.create' }.",
    operation_ambiguous:
      "One handler stands under several patterns, so that what it does has several names, and a key would run once under each. Pass operation, for example { operation: 'payments.create' }, or give each route a function of its own.",
    setup_invalid:
      'The service is not set up so that its requests can be protected, so this one was not run. The detail says what to change.',
    account_invalid:
      'A scope needs an account: a non-empty string of at most 255 characters. There is no anonymous account.',
    operation_invalid:
      'A scope needs an operation: a name such as payments.create, of at most 255 characters.',
    business_key_invalid:
      'A business key needs a name and at least one identifier: non-empty strings, safe integers or bigints.',
    pointer_invalid: 'A fingerprint field is not a JSON Pointer. Write for example /meta/trace_id.',
    secret_invalid:
      'The secret is not usable. Give at least 32 bytes, or a key ring with a current id that it contains.',
    input_not_serializable:
      'The input cannot be fingerprinted or stored. Pass plain JSON values: no functions, symbols, bigints, NaN or cycles.',
    raw_body_missing:
      "The body was read before the idempotency layer could see its bytes. Put the layer before the body parser, keep the bytes (see keepRawBody), or declare fingerprint: { body: 'parsed' }.",
    store_misconfigured:
      'The database cannot be used with these settings. The operator of the service has to repair them; nothing was started.',
    statement_not_prepared:
      "The connection pooler does not carry named statements. Pass pooler: 'transaction' to postgres().",
    schema_missing: "The schema is not installed. Run the migrations, or pass migrate: 'apply'.",
    schema_outdated: 'The schema is older than this version needs. Run the migrations first.',
    schema_too_new:
      'The schema was changed by a newer version in a way that this version cannot work with. Upgrade onlyonce.',
    schema_changed: 'A migration that was applied differs from the one that is shipped.',
  }),
  ...told(
    500,
    true,
    'not_by_this_request',
    'The service has made a mistake and everything was rolled back, so this request changed nothing. An earlier request with this key may have taken effect. Send the same request with the same key again later, when the service is repaired.',
    {
      statement_failed:
        'A statement failed and the function went on as if it had not, so everything was rolled back. A retry will most likely meet the same error. Let the function throw it, or use a savepoint.',
    },
  ),
  ...told(
    503,
    true,
    'not_by_this_request',
    'The transaction was idle for too long and was rolled back. An earlier request with this key may have taken effect. Send the same request with the same key again.',
    {
      transaction_idle:
        'The transaction was idle for too long and was rolled back. In the function, wait for nothing but tx; a query on the pool itself may wait for the very connection that this transaction holds.',
    },
  ),
  ...told(
    503,
    true,
    'unknown',
    'The reply to this request cannot be read now. Retry with the same key to get the outcome; do not use a new key.',
    {
      seal_key_unknown:
        'The reply is sealed with a key that this process does not have. Add it to the key ring in encryption.',
    },
  ),
  ...told(500, false, 'unknown', IN_DOUBT, {
    seal_broken:
      'The stored reply cannot be opened: it was changed, belongs to another record, or was sealed with other bytes under the same key id. It is not replayed and nothing is run again; ask an operator.',
    value_not_serializable:
      'The value cannot be stored. Return plain JSON values: no functions, symbols, bigints, NaN, invalid dates, bytes, errors, regular expressions, maps, sets, cycles, and nothing undefined in a list.',
    value_too_large: 'The value is larger than the limit for stored replies. Return less.',
    transaction_over: 'The transaction has ended. Await every tx.query before the function returns.',
    transaction_control_refused:
      'The function may not begin or end its transaction; the statement was not sent. Use savepoints inside it.',
    transaction_ended_inside:
      'The function ended its own transaction, so its effects may stand without a record. Use savepoints inside it.',
    statement_refused:
      'This statement does not belong into the transaction of a protected request, because it would outlive it or cannot work there; it was not sent. The detail says what to use in its place.',
    isolation_refused:
      'The transaction of a protected request has begun already, with its own isolation level; nothing was sent. Ask for the level where the request is protected, with isolation, and not inside of it.',
    nested_transaction_busy:
      'A nested transaction is open on this tx and sends nothing, so a statement outside of it was refused and not sent. Inside a nested transaction use the object that the ORM gives for it, and await what is begun.',
    nested_transaction_failed:
      'A statement of the nested transaction has failed, so it cannot be committed. Let its function throw the error of that statement, so that the nested transaction is rolled back.',
    current_tx_missing:
      'No protected transaction runs here, so there is none to write in. Call currentTx() inside the function of one, with currentTx: true in postgres(), and not from code that was started outside of it, such as a timer or a batch of several requests.',
    transaction_unused:
      'The function sent no statement on its transaction, so what it did elsewhere, if anything, stands without a record. It is not run again. Send its statements on tx.',
    within_busy:
      'Another once.within, inbox or decision is running on this transaction. Await it first; inside the function of once.within use the tx that it is given.',
    transaction_required:
      'A client with an open transaction is needed here, not a pool. Send BEGIN first. Await this call before you end the transaction.',
    operation_changed:
      'The code of the operation does not fit the steps that are durable, so it was not run. Give the changed code a version, name@2, keep the version before, and let an operator unpark the record.',
    steps_overlap: 'A step was begun while another one was running. Await each step before the next.',
    call_refused: 'The other side refused the call for good. An operator has to decide.',
    option_invalid: 'An option is not valid.',
    memory_has_no_database: 'The memory store has no database: its tx cannot run queries.',
  }),
} as const satisfies Record<string, ErrorEntry>
