import { type ErrorEntry, final, retryable } from './error-entry.ts'

/** Every error that onlyonce raises, in one table. Match on `code`: codes never change, messages may. */
export const TABLE = {
  // The key, as the client sent it.
  ...final(400, 'not_by_this_request', {
    key_missing: 'No idempotency key was sent. Send one, for example a UUID, in Idempotency-Key.',
    key_empty: 'The idempotency key is empty. Send a unique value, for example a UUID.',
    key_blank: 'The idempotency key holds only spaces. Send a unique value, for example a UUID.',
    key_list: 'The idempotency key is a list. Send exactly one key; quote it if it holds a comma.',
    key_repeated: 'The idempotency key header was sent more than once. Send it once.',
    key_parameters: 'The idempotency key carries parameters. Send the key alone, without ";".',
    key_malformed: 'The idempotency key is not a valid quoted string. Send "key" or a bare key.',
    key_too_long: 'The idempotency key is too long. Send at most 255 characters.',
    key_too_short: 'The idempotency key is too short to be unique. Send for example a UUID.',
    key_control_character: 'The idempotency key holds a control character. Send printable ASCII.',
    key_not_ascii: 'The idempotency key holds a character outside ASCII. Send printable ASCII.',
    key_space: 'The bare idempotency key holds a space. Quote it, or send a key without spaces.',
    key_not_a_string: 'The idempotency key is not a string. Pass a string.',
    key_card_number: 'The idempotency key is a card number. Send a random key, never card data.',
    key_email: 'The idempotency key is an e-mail address. Send a random key, never personal data.',
    key_phone: 'The idempotency key looks like a phone number. Send a random key, never personal data.',
    key_social_security:
      'The idempotency key looks like a social-security number. Send a random key, never personal data.',
    key_not_issued: 'Only keys that this service issued are accepted. Ask it for one.',
    key_forged:
      'The idempotency key begins like an issued one, and was not issued for this account and operation. Send an issued key unchanged, or a key of your own that begins otherwise.',
    key_expired:
      'The idempotency key has expired and starts nothing new. Ask for a new key; if this one was used long ago, find out first what became of that request.',
  }),
  ...retryable(503, 'not_by_this_request', {
    key_just_expired:
      'The idempotency key has just expired, and a request with it may still be under way. Retry with the same key to get the outcome.',
    key_signer_unknown: 'The key names a secret that is not in the key ring. Add it there.',
    clocks_disagree:
      'The idempotency key expires later than any issued key can: the clock of this process, or of the one that issued it, is wrong. Set it right.',
  }),
  ...final(500, 'unknown', {
    business_key_invalid:
      'A business key needs a name and at least one identifier: non-empty strings, safe integers or bigints.',
    account_invalid:
      'A scope needs an account: a non-empty string of at most 255 characters. There is no anonymous account.',
    operation_invalid:
      'A scope needs an operation: a name such as payments.create, of at most 255 characters.',
  }),

  // The request, as it is fingerprinted.
  ...final(413, 'not_by_this_request', {
    body_too_large: 'The request body is larger than the limit for protected requests.',
  }),
  ...final(400, 'not_by_this_request', {
    json_malformed: 'The request body is not valid JSON. Correct it and send it again.',
    json_not_utf8: 'The request body is not valid UTF-8. Encode JSON as UTF-8.',
    json_too_deep: 'The request body is nested too deeply.',
    json_too_many_members: 'The request body has too many members.',
    json_duplicate_member:
      'The request body names a member twice, so its meaning is ambiguous. Name each member once.',
    json_lone_surrogate: 'The request body holds half of a surrogate pair, which is not text.',
    json_number_inexact:
      'The request body holds a number that JavaScript would round, so the operation would be given another one. Send such a number as a string.',
    request_invalid: 'The request is not valid. Correct it, and send it with the same key.',
    request_invalid_kept:
      'The request is not valid, and changed nothing. An earlier request with this key has left a record, so the key stays with its content. Find out what became of the earlier request, and use a new key for a corrected one.',
    encoding_malformed: 'The request body is not what its Content-Encoding says. Compress it again.',
    multipart_malformed:
      'The request body is not well-formed multipart/form-data. Correct it and send it again.',
  }),
  ...final(415, 'not_by_this_request', {
    charset_unsupported:
      'JSON is read as UTF-8 alone. Send it as UTF-8, with charset=utf-8 or without a charset.',
    encoding_unsupported:
      'The Content-Encoding of the request body is not supported here. Send JSON in gzip, deflate or br, one of them, and forms without any.',
    body_not_json: 'The operation takes JSON. Send the body as application/json.',
    body_not_multipart: 'The route takes forms. Send the body as multipart/form-data.',
  }),
  ...final(500, 'unknown', {
    input_not_serializable:
      'The input cannot be fingerprinted. Pass plain JSON values: no functions, symbols, bigints, NaN or cycles.',
    pointer_invalid: 'A fingerprint field is not a JSON Pointer. Write for example /meta/trace_id.',
    secret_invalid:
      'The secret is not usable. Give at least 32 bytes, or a key ring with a current id that it contains.',
  }),
  ...retryable(503, 'not_by_this_request', {
    fingerprint_key_unknown:
      'The record was fingerprinted with a key that this process does not have. Add it to the key ring.',
  }),

  // The keys that records name.
  ...retryable(503, 'unknown', {
    seal_key_unknown:
      'The reply is sealed with a key that this process does not have. Add it to the key ring in encryption.',
  }),
  ...final(500, 'unknown', {
    seal_broken:
      'The stored reply cannot be opened: it was changed, belongs to another record, or was sealed with other bytes under the same key id. It is not replayed and nothing is run again; ask an operator.',
  }),
  ...final(500, 'not_by_this_request', {
    key_ring_incomplete:
      'Records that are still needed name keys that this process does not have. Add these to the key ring, and start again.',
  }),

  // The work and its record.
  ...final(500, 'unknown', {
    value_not_serializable:
      'The value cannot be stored. Return plain JSON values: no functions, symbols, bigints, NaN, invalid dates, bytes, errors, regular expressions, maps, sets, cycles, and nothing undefined in a list.',
    value_too_large: 'The value is larger than the limit for stored replies. Return less.',
  }),
  ...retryable(503, 'no', {
    not_executed: 'This request was not executed. Send the same request with the same key again.',
  }),
  ...retryable(503, 'not_by_this_request', {
    not_applied:
      'This request changed nothing: its work did nothing, or was rolled back. An earlier request with this key may have taken effect. Send the same request with the same key again.',
  }),
  ...retryable(503, 'unknown', {
    unfinished:
      'The request has begun and did not come to its end. Retry with the same key: it goes on where it stopped. Do not use a new key.',
  }),
  ...final(500, 'unknown', {
    handler_failed:
      'The request failed before and may have taken effect, so it is not run again. Use a new key for a new request.',
  }),
  ...retryable(503, 'unknown', {
    lease_lost:
      'Another owner has taken this record over, so the result of this attempt was not stored. Retry with the same key to get the outcome.',
  }),
  ...final(500, 'unknown', {
    transaction_over: 'The transaction has ended. Await every tx.query before the function returns.',
    transaction_control_refused:
      'The function may not begin or end its transaction; the statement was not sent. Use savepoints inside it.',
    transaction_ended_inside:
      'The function ended its own transaction, so its effects may stand without a record. Use savepoints inside it.',
    transaction_unused:
      'The function sent no statement on its transaction, so what it did elsewhere, if anything, stands without a record. It is not run again. Send its statements on tx.',
  }),
  ...retryable(503, 'not_by_this_request', {
    transaction_idle:
      'The transaction was idle for too long and was rolled back. An earlier request with this key may have taken effect. Send the same request with the same key again. In the function, wait for nothing but tx; a query on the pool itself may wait for the very connection that this transaction holds.',
  }),
  ...final(500, 'unknown', {
    within_busy:
      'Another once.within is running on this transaction. Await it first; inside its function use the tx that it is given.',
    transaction_required: 'A client with an open transaction is needed here, not a pool. Send BEGIN first.',
  }),
  ...retryable(503, 'not_by_this_request', {
    serialization_failed:
      'The transaction kept colliding with others and was rolled back. An earlier request with this key may have taken effect. Send the same request with the same key again.',
  }),
  ...retryable(504, 'not_by_this_request', {
    deadline_exceeded:
      'The time for this request ran out, and it changed nothing. An earlier request with this key may have taken effect. Send the same request with the same key again.',
  }),
  ...retryable(503, 'unknown', {
    outcome_unknown:
      'It is not known whether the request took effect. Retry with the same key to get the outcome; do not use a new key.',
  }),

  // Operations.
  ...final(500, 'unknown', {
    operation_changed:
      'The code of the operation does not fit the steps that are durable, so it was not run. Give the changed code a version, name@2, keep the version before, and let an operator unpark the record.',
    steps_overlap: 'A step was begun while another one was running. Await each step before the next.',
    call_refused: 'The other side refused the call for good. An operator has to decide.',
  }),
  ...retryable(503, 'not_by_this_request', {
    operation_unknown:
      'The record was begun by a version of the operation that this process does not know, so this request did not go on with it. Pass that version to onlyonce({ operations }) too.',
  }),

  // Locks.
  ...final(500, 'unknown', {
    resource_invalid: 'A lock needs a resource: a non-empty string of at most 255 characters.',
  }),
  ...retryable(409, 'unknown', {
    lock_held: 'Somebody else holds the lock. Try again after retry_after_ms, or wait for it with wait_ms.',
  }),
  ...retryable(503, 'unknown', {
    fence_stale:
      'The lock is not held any more: it ran out or was released, and somebody else may hold it. Nothing that was done under it may stand: roll back, and acquire it again.',
  }),

  // What operators decide.
  ...final(500, 'unknown', {
    decision_invalid:
      'A decision of an operator needs by, who decides, in at most 255 characters, and why, in at most 1000.',
  }),
  ...final(409, 'unknown', {
    not_resolvable: 'This cannot be decided about a record in its present state; nothing was changed.',
  }),
  ...retryable(409, 'unknown', {
    record_changed:
      'Somebody else has changed the record meanwhile; nothing was changed by you. Look at it again, and decide anew.',
  }),

  // What a route does not admit now.
  ...retryable(429, 'not_by_this_request', {
    rate_limited:
      'Too many requests in a short time; this one started nothing. An earlier request with this key may have. Send the same request with the same key again after Retry-After.',
    velocity_limited:
      'Too many attempts for the same subject; this request started nothing. An earlier request with this key may have. A new key does not change that: wait as long as Retry-After says.',
    not_admitted:
      'The request was not admitted and started nothing. An earlier request with this key may have. Send the same request with the same key again later.',
  }),
  ...retryable(503, 'not_by_this_request', {
    limits_unavailable:
      'The limits of this request cannot be counted now; this request started nothing. An earlier request with this key may have. Send the same request with the same key again after Retry-After.',
  }),
  // Webhooks, on their way in and out.
  ...final(400, 'unknown', {
    webhook_unsigned: 'The webhook carries no signature of the expected form. Send its signature headers.',
    webhook_timestamp_invalid: 'The timestamp of the webhook is not a number of seconds. Send digits alone.',
    webhook_signature_invalid:
      'No signature of the webhook fits its bytes and any of the secrets. Sign the very bytes that are sent, with the secret of this endpoint.',
    webhook_too_old: 'The webhook was signed too long ago. Sign it anew for every attempt.',
    webhook_too_new: 'The webhook was signed in the future: a clock is wrong. Set it right.',
    webhook_payload_invalid: 'The payload of the webhook is not what its scheme wants. Send JSON with an id.',
    webhook_url_refused: 'Webhooks are not sent to this address.',
    webhook_endpoint_invalid: 'The webhook endpoint is not valid.',
  }),
  ...final(404, 'unknown', {
    webhook_endpoint_unknown: 'There is no such webhook endpoint.',
    webhook_message_unknown: 'There is no such message, or it is not kept any more.',
  }),
  ...final(409, 'unknown', {
    webhook_endpoint_disabled: 'The webhook endpoint is disabled. Enable it first.',
    webhook_endpoints_too_many: 'The account has as many webhook endpoints as it may have. Remove one first.',
    webhook_url_taken: 'This URL has a webhook endpoint already. Change that one, or remove it first.',
  }),
  ...final(500, 'unknown', {
    webhook_body_not_raw:
      'A webhook is verified over the bytes that came in. Pass them as a Buffer or a Uint8Array, before anything parses or decodes them.',
    webhook_secret_invalid: 'A secret of a webhook is not usable. Give it as its issuer has shown it.',
  }),

  // What the HTTP boundary answers by itself.
  ...final(401, 'not_by_this_request', {
    account_missing: 'The request belongs to no account. Authenticate first.',
  }),
  ...final(400, 'not_by_this_request', {
    deadline_invalid:
      'The deadline of the request is not a time. Send milliseconds since the epoch, or a date and time with its zone.',
  }),
  ...final(422, 'not_by_this_request', {
    key_reused:
      'The idempotency key was used for another request, and this one was not run. Use a new key for a new request, and the same request for a retry.',
  }),
  ...retryable(409, 'unknown', {
    in_progress:
      'A request with this idempotency key is in progress. Send the same request with the same key again later.',
    outcome_pending:
      'Whether the request took effect is being found out, and it is not run meanwhile. Send the same request with the same key again later.',
  }),
  ...final(409, 'unknown', {
    parked:
      'Whether the request took effect has to be decided by an operator. Contact support; do not use a new key.',
  }),
  ...final(409, 'yes', {
    reply_not_kept:
      'The request took effect, and its reply was too large to be kept. Look its result up; do not use a new key.',
  }),
  ...final(500, 'not_by_this_request', {
    statement_failed:
      'A statement failed and the service went on as if it had not, so everything was rolled back and this request changed nothing. An earlier request with this key may have taken effect. A retry will most likely meet the same error: the service has to be corrected first.',
    layer_twice:
      'The idempotency layer stands twice before this handler, and the two ask for different things. Keep one of them: that of the application or that of the route.',
    operation_missing:
      "The idempotency layer sees no pattern of a route here, so what the request does needs a name. Pass operation, for example { operation: 'payments.create' }.",
    raw_body_missing:
      "The body was read before the idempotency layer could see its bytes. Put the layer before the body parser, keep the bytes (see keepRawBody), or declare fingerprint: { body: 'parsed' }.",
  }),

  // The store and the process.
  ...retryable(503, 'not_by_this_request', {
    store_unavailable:
      'The database cannot do this now; this request started nothing. An earlier request with this key may have. Send the same request with the same key again.',
    pool_exhausted:
      'No database connection became free in time; this request started nothing. An earlier request with this key may have. Send the same request with the same key again. Inside a transaction use tx, or once.within, and enlarge the pool if this persists.',
    closed:
      'This process is shutting down and takes no more work; this request started nothing. An earlier request with this key may have. Send the same request with the same key again.',
    overloaded:
      'Too many requests are waiting; this one started nothing. An earlier request with this key may have. Send the same request with the same key again later.',
  }),
  ...final(500, 'not_by_this_request', {
    store_misconfigured:
      'The service cannot use its database as it is set up; this request started nothing. An earlier request with this key may have. An operator has to repair the settings.',
    statement_not_prepared:
      "The connection pooler does not carry named statements. Pass pooler: 'transaction' to postgres().",
  }),
  ...final(500, 'unknown', {
    option_invalid: 'An option is not valid.',
    memory_has_no_database: 'The memory store has no database: its tx cannot run queries.',
  }),
  ...final(500, 'not_by_this_request', {
    schema_missing: "The schema is not installed. Run the migrations, or pass migrate: 'apply'.",
    schema_outdated: 'The schema is older than this version needs. Run the migrations first.',
    schema_too_new:
      'The schema was changed by a newer version in a way that this version cannot work with. Upgrade onlyonce.',
    schema_changed: 'A migration that was applied differs from the one that is shipped.',
  }),
} as const satisfies Record<string, ErrorEntry>
