import { API_LIMITS } from '../../api/limits.ts'
import { type Row, TEA } from './site.ts'

const TEXT = JSON.stringify(TEA)
const INNER = TEXT.slice(1, -1)
const deep = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`
const wide = (members: number) =>
  JSON.stringify(Object.fromEntries(Array.from({ length: members }, (_, i) => [`a${i}`, 1])))
/** A payment with one more member, or with one in place of another. */
const withMember = (member: string) => `{${INNER},${member}}`

/** Bytes that are no JSON, or JSON that is no payment. */
export const bodies: readonly Row[] = [
  ...(
    [
      ['a text', '"pay"'],
      ['a number', '4200'],
      ['true', 'true'],
      ['null', 'null'],
      ['a list', '[]'],
      ['a list of payments', `[${TEXT}]`],
      ['nothing', ''],
    ] as const
  ).map(([what, body]): Row => [what, { body }, 400, 'invalid_request']),
  ...(
    [
      ['spaces alone', '   '],
      ['words', 'pay 42 euros'],
      ['a form', 'amount=4200&currency=EUR'],
      ['XML', '<amount>4200</amount>'],
      ['an object that does not end', TEXT.slice(0, -1)],
      ['a text that does not end', TEXT.slice(0, -3)],
      ['half of it', TEXT.slice(0, 20)],
      ['one brace', '{'],
      ['a brace too many', `${TEXT}}`],
      ['two of it', `${TEXT}${TEXT}`],
      ['two of it on two lines', `${TEXT}\n${TEXT}`],
      ['NUL behind it', `${TEXT}\0`],
      ['a byte order mark', `\ufeff${TEXT}`],
      ['a comma too many', `{${INNER},}`],
      ['a comma too few', TEXT.replace(',', ' ')],
      ['a comment', `{/* tea */${INNER}}`],
      ['a comment at its end', `${TEXT} // tea`],
      ['names without quotes', '{amount:4200}'],
      ['other quotes', TEXT.replaceAll('"', "'")],
      ['a name that is a number', '{1:2}'],
      ['NaN', TEXT.replace('4200', 'NaN')],
      ['infinity', TEXT.replace('4200', 'Infinity')],
      ['undefined', TEXT.replace('4200', 'undefined')],
      ['a number in hexadecimal', TEXT.replace('4200', '0x1068')],
      ['a number that begins with zero', TEXT.replace('4200', '04200')],
      ['a number with a plus', TEXT.replace('4200', '+4200')],
      ['a number with a point at its end', TEXT.replace('4200', '4200.')],
      ['a number with a point at its begin', TEXT.replace('4200', '.5')],
      ['a number with an underscore', TEXT.replace('4200', '4_200')],
      ['a number and a unit', TEXT.replace('4200', '4200n')],
      ['a line break in a text', withMember('"reference":"a\nb"')],
      ['a tab in a text', withMember('"reference":"a\tb"')],
      ['NUL in a text', withMember('"reference":"a\0b"')],
      ['an escape that there is not', withMember('"reference":"\\x41"')],
      ['half an escape', withMember('"reference":"\\u12"')],
    ] as const
  ).map(([what, body]): Row => [what, { body }, 400, 'json_malformed']),
  ['bad UTF-8', { body: Buffer.from(withMember('"reference":"\xff"'), 'latin1') }, 400, 'json_not_utf8'],
  [
    'UTF-8 that is cut',
    { body: Buffer.from(withMember('"reference":"\xe2\x82"'), 'latin1') },
    400,
    'json_not_utf8',
  ],
  [
    'UTF-8 that is too long',
    { body: Buffer.from(withMember('"reference":"\xc0\xaf"'), 'latin1') },
    400,
    'json_not_utf8',
  ],
  [
    'a surrogate in UTF-8',
    { body: Buffer.from(withMember('"reference":"\xed\xa0\x80"'), 'latin1') },
    400,
    'json_not_utf8',
  ],
  ['UTF-16', { body: Buffer.from(TEXT, 'utf16le') }, 400, 'json_malformed'],
  ['compressed bytes', { body: Buffer.from('1f8b0800000000000003', 'hex') }, 400, 'json_not_utf8'],
  ['half a surrogate pair', { body: withMember('"reference":"\\ud83d"') }, 400, 'json_lone_surrogate'],
  ['the other half', { body: withMember('"reference":"\\ude00 tea"') }, 400, 'json_lone_surrogate'],
  [
    'a pair the wrong way round',
    { body: withMember('"reference":"\\ude00\\ud83d"') },
    400,
    'json_lone_surrogate',
  ],
  ['half a pair in a name', { body: withMember('"\\ud83d":1') }, 400, 'json_lone_surrogate'],
  ['a member twice', { body: withMember('"amount":4200') }, 400, 'json_duplicate_member'],
  ['a member twice, once escaped', { body: withMember('"\\u0061mount":1') }, 400, 'json_duplicate_member'],
  [
    'a member of a member twice',
    { body: withMember('"metadata":{"a":"1","a":"2"}') },
    400,
    'json_duplicate_member',
  ],
  ['too many levels', { body: deep(API_LIMITS.jsonDepthMax + 1) }, 400, 'json_too_deep'],
  ['a great many levels', { body: deep(10_000) }, 400, 'json_too_deep'],
  ['a great many lists', { body: '['.repeat(60_000) }, 400, 'json_too_deep'],
  ['a great many members', { body: wide(5_000) }, 400, 'json_too_many_members'],
  [
    'more than is read',
    { body: JSON.stringify({ ...TEA, reference: 'a'.repeat(65_536) }) },
    413,
    'body_too_large',
  ],
  [
    'a megabyte',
    { body: JSON.stringify({ ...TEA, reference: 'a'.repeat(1_048_576) }) },
    413,
    'body_too_large',
  ],
  ['a megabyte of spaces', { body: ' '.repeat(1_048_576) }, 413, 'body_too_large'],
  [
    'NUL escaped in a text',
    { body: withMember('"reference":"a\\u0000b"') },
    400,
    'invalid_request',
    'reference',
  ],
  ['NUL escaped in a name', { body: withMember('"a\\u0000b":1') }, 400, 'invalid_request', 'ab'],
  [
    'NUL escaped in metadata',
    { body: withMember('"metadata":{"a":"\\u0000"}') },
    400,
    'invalid_request',
    'metadata.a',
  ],
  ['a prototype', { body: withMember('"__proto__":{"amount":1}') }, 400, 'invalid_request', '__proto__'],
  ['a prototype, escaped', { body: withMember('"\\u005f_proto__":{}') }, 400, 'invalid_request', '__proto__'],
  [
    'a constructor',
    { body: withMember('"constructor":{"prototype":{}}') },
    400,
    'invalid_request',
    'constructor',
  ],
  ['toString', { body: withMember('"toString":1') }, 400, 'invalid_request', 'toString'],
  ['a name of nothing', { body: withMember('"":1') }, 400, 'invalid_request'],
  ['a name in other letters', { body: withMember('"Amount":4200') }, 400, 'invalid_request', 'Amount'],
  [
    'a very long name',
    { body: withMember(`"${'n'.repeat(5_000)}":1`) },
    400,
    'invalid_request',
    'n'.repeat(100),
  ],
  ['a name that would be markup', { body: withMember('"<script>":1') }, 400, 'invalid_request', '<script>'],
]
