import { type Row, type Site, TEA, wire } from './site.ts'

const UUID = '8e03978e-40d5-43e8-bc93-6894a57f9324'

/** The key, in a request that is right otherwise. */
export function keys(site: Site): Row[] {
  const text = (what: string, key: string, code: string): Row => [what, { key, body: TEA }, 400, code]
  /** Written by hand where a client of HTTP would mend it, or refuse. */
  const bytes = (what: string, value: string | readonly string[] | null, code: string): Row => {
    const raw = Buffer.from(wire(site, { headers: { 'Idempotency-Key': value } }), 'latin1')
    return [what, { key: 'unused', raw }, 400, code]
  }
  return [
    bytes('is missing', null, 'key_missing'),
    bytes('is empty', '', 'key_empty'),
    bytes('is nothing but spaces', '     ', 'key_empty'),
    bytes('is nothing but tabs', '\t\t', 'key_empty'),
    bytes('is sent twice', [UUID, `${UUID}-2`], 'key_repeated'),
    bytes('is sent twice, and the same', [UUID, UUID], 'key_repeated'),
    bytes('is sent three times', [UUID, '', `${UUID}-3`], 'key_repeated'),
    bytes('is empty, and sent twice', ['', ''], 'key_repeated'),
    bytes('is sent twice, in other letters', [UUID, `x\r\nIDEMPOTENCY-KEY: ${UUID}`], 'key_repeated'),
    bytes('holds a letter outside ASCII', 'order-\xe9-attempt-1', 'key_not_ascii'),
    bytes('holds UTF-8', 'order-\xe2\x82\xac-attempt-1', 'key_not_ascii'),
    bytes('is quoted, and holds a letter outside ASCII', '"order-\xfc-attempt-1"', 'key_not_ascii'),
    bytes('ends in a space that does not break', 'order-1-attempt-1\xa0', 'key_not_ascii'),
    bytes('holds a tab', 'order-1\tattempt-1', 'key_control_character'),
    bytes('is quoted, and holds a tab', '"order-1\tattempt-1"', 'key_control_character'),
    bytes('holds NUL', 'order-1\0attempt-1', 'invalid_request'),
    bytes('holds the bell', 'order-1\x07attempt-1', 'invalid_request'),
    bytes('holds DEL', 'order-1\x7fattempt-1', 'invalid_request'),
    bytes('holds a line feed', 'order-1\nattempt-1', 'invalid_request'),
    bytes('holds a carriage return', 'order-1\rattempt-1', 'invalid_request'),
    text('is a list', 'order-1-first, order-1-second', 'key_list'),
    text('is a list of quoted ones', '"order-1-first", "order-1-second"', 'key_list'),
    text('ends in a comma', `${UUID},`, 'key_list'),
    text('begins with a comma', `,${UUID}`, 'key_list'),
    text('has a parameter', `"${UUID}";version=1`, 'key_parameters'),
    text('has a parameter without a value', `"${UUID}";v`, 'key_parameters'),
    text('is bare and has a parameter', `${UUID};version=1`, 'key_parameters'),
    text('is a quote that does not end', `"${UUID}`, 'key_malformed'),
    text('ends in a quote that did not begin', `${UUID}"`, 'key_malformed'),
    text('has a quote inside', 'order"1"attempt', 'key_malformed'),
    text('has something behind its quotes', `"${UUID}"x`, 'key_malformed'),
    text('ends in an escape', '"order-1-attempt\\"', 'key_malformed'),
    text('escapes what cannot be escaped', '"order\\n1-attempt"', 'key_malformed'),
    text('is an empty quote', '""', 'key_empty'),
    text('is a quoted blank', '"        "', 'key_blank'),
    text('holds a space', 'order 1 attempt 1', 'key_space'),
    text('is too long', 'k'.repeat(256), 'key_too_long'),
    text('is quoted and too long', `"${'k'.repeat(256)}"`, 'key_too_long'),
    text('is far too long', 'k'.repeat(8_000), 'key_too_long'),
    text('is too short', 'order-1', 'key_too_short'),
    text('is one character', '1', 'key_too_short'),
    text('is a card number', '4242424242424242', 'key_card_number'),
    text('is a card number in groups', '"4242 4242 4242 4242"', 'key_card_number'),
    text('is a card number with dashes', '4242-4242-4242-4242', 'key_card_number'),
    text('holds a card number', 'order_1-4242424242424242-try', 'key_card_number'),
    text('is an e-mail address', 'somebody@example.com', 'key_email'),
    text('is a telephone number', '+4915112345678', 'key_phone'),
    text('is a social-security number', '123-45-6789', 'key_social_security'),
    text('pretends to be issued', 'once.1.default.AAAAAAAAAAAAAAAAAAAAAAAA', 'key_forged'),
  ]
}
