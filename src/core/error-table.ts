import { type ErrorEntry, final, retryable, told } from './error-entry.ts'
import { MISTAKES } from './error-mistakes.ts'

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
      'The request is not valid, and changed nothing. The record of this key is kept, and the key stays with its content. Use a new key for a corrected request. If an earlier request was sent with this key, find out first what became of it.',
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

  // The work and its record.
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
      'The request failed before and may have taken effect, so it is not run again. Contact support to find out what became of it; do not use a new key.',
  }),
  ...retryable(503, 'unknown', {
    lease_lost:
      'This attempt no longer owns its record: it took too long, or another owner has taken the record over. Its result was not stored. Retry with the same key to get the outcome.',
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

  // Locks.
  ...final(500, 'unknown', {
    resource_invalid: 'A lock needs a resource: a non-empty string of at most 255 characters.',
  }),
  ...retryable(409, 'unknown', {
    lock_held: 'Another holder has the lock. Try again after retryAfterMs, or wait for it with waitMs.',
  }),
  ...retryable(503, 'unknown', {
    fence_stale:
      'The lock is not held any more: it ran out or was released, and another holder may have it. Nothing that was done under it may stand: roll back, and acquire it again.',
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
      'Another decision or attempt has changed the record meanwhile; nothing was changed by you. Look at it again, and decide anew.',
  }),

  // What a route does not admit now.
  ...retryable(429, 'not_by_this_request', {
    rate_limited:
      'Too many requests in a short time; this one started nothing. An earlier request with this key may have. Send the same request with the same key again after Retry-After.',
    velocity_limited:
      'Too many attempts for the same subject; this request started nothing. An earlier request with this key may have. Send the same request with the same key again after Retry-After; a new key does not change that.',
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
      'Whether the request took effect is not known yet, and it is not run again meanwhile. Send the same request with the same key again later to get the outcome; do not use a new key.',
  }),
  ...final(409, 'unknown', {
    parked:
      'Whether the request took effect has to be decided by an operator. Contact support; do not use a new key.',
    reply_not_json:
      'The request has ended, and its stored reply is not JSON, so it cannot be given as a value. Contact support to learn its outcome; do not use a new key.',
  }),
  ...final(410, 'unknown', {
    key_erased:
      'The record of this idempotency key was erased, and nothing runs under this key any more. Whether its request took effect is not known here. Contact support to learn its outcome; do not use a new key.',
  }),
  ...final(409, 'yes', {
    reply_not_kept:
      'The request took effect, and its reply was too large to be kept. Look its result up; do not use a new key.',
  }),

  // The store and the process.
  ...retryable(503, 'not_by_this_request', {
    store_unavailable:
      'The database cannot do this now; this request started nothing. An earlier request with this key may have. Send the same request with the same key again.',
    overloaded:
      'Too many requests are waiting; this one started nothing. An earlier request with this key may have. Send the same request with the same key again later.',
  }),
  ...retryable(503, 'not_by_this_request', {
    closed:
      'This process is shutting down and takes no more work; this request started nothing. An earlier request with this key may have. Send the same request with the same key again.',
  }),
  // Load, a stall, or a pool that is too small: no proof of a mistake, but what helps is for the developer to read.
  ...told(
    503,
    true,
    'not_by_this_request',
    'No database connection became free in time; this request started nothing. An earlier request with this key may have. Send the same request with the same key again.',
    {
      pool_exhausted:
        'No database connection became free in time, so nothing was started. Inside a transaction use tx, or once.within, and enlarge the pool if this persists while the database answers. A database that is silent (stopped, overloaded, or cut off) keeps all connections busy, and looks the same.',
    },
  ),

  // What is wrong with the service itself.
  ...MISTAKES,
} as const satisfies Record<string, ErrorEntry>
