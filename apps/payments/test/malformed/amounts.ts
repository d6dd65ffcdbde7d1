import { type Row, type Site, TEA } from './site.ts'

/** As they stand in the JSON; what JSON.stringify would not write among them. */
const AMOUNTS: readonly (readonly [string, string])[] = [
  ['zero', '0'],
  ['negative zero', '-0'],
  ['a negative amount', '-100'],
  ['a fraction', '10.5'],
  ['a small fraction', '0.01'],
  ['a fraction that would be rounded away', '4200.00000000000000001'],
  ['one more than the most', '100000000'],
  ['2^53', '9007199254740992'],
  ['past 2^53', '9007199254740993'],
  ['past all', '1e400'],
  ['negative, past all', '-1e400'],
  ['too great, with an exponent', '1e20'],
  ['next to nothing', '1e-400'],
  ['a text', '"4200"'],
  ['an empty text', '""'],
  ['a text with a point', '"42.00"'],
  ['null', 'null'],
  ['true', 'true'],
  ['a list', '[4200]'],
  ['an object', '{"value":4200}'],
]

/** What is to be paid, taken, given back or sent. */
export function amounts({ captured, held, other, dinars, dinarsHeld }: Site): Row[] {
  const routes = [
    ['a payment', '/v1/payments', TEA],
    ['a capture', `/v1/payments/${held}/capture`, {}],
    ['a refund', `/v1/payments/${captured}/refunds`, {}],
    ['a transfer', '/v1/transfers', { destination: other.accountId, currency: 'EUR' }],
  ] as const
  const every = routes.flatMap(([name, path, good], i) =>
    AMOUNTS.filter((_, j) => i === 0 || j % routes.length === i).map(([what, amount]): Row => {
      const body = JSON.stringify({ ...good, amount: '?' }).replace('"?"', amount)
      return [`${what}, of ${name}`, { path, body }, 400, 'invalid_request', 'amount']
    }),
  )
  const kwd = (what: string, amount: number): Row => [
    `${what}, in dinars`,
    { body: { ...TEA, amount, currency: 'KWD' } },
    400,
    'invalid_request',
    'amount',
  ]
  return [
    ...every,
    ['none, of a payment', { body: { ...TEA, amount: undefined } }, 400, 'invalid_request', 'amount'],
    kwd('a step of one', 1_001),
    kwd('less than a step', 5),
    [
      'a step of one, of a transfer in dinars',
      { path: '/v1/transfers', body: { destination: other.accountId, amount: 15, currency: 'KWD' } },
      400,
      'invalid_request',
      'amount',
    ],
    ...[
      ['a capture', `/v1/payments/${dinarsHeld}/capture`],
      ['a refund', `/v1/payments/${dinars}/refunds`],
    ].map(
      ([what, path]): Row => [
        `a step of one, of ${what} in dinars`,
        { path: path!, body: { amount: 1_005 } },
        400,
        'invalid_request',
        'amount',
      ],
    ),
  ]
}

const bad = (field: string, values: readonly (readonly [string, unknown])[]): Row[] =>
  values.map(([what, value]) => [
    `${what} as ${field}`,
    { body: { ...TEA, [field]: value } },
    400,
    'invalid_request',
    field,
  ])

/** The other members of a payment. */
export const members: readonly Row[] = [
  ...bad('currency', [
    ['nothing', undefined],
    ['null', null],
    ['a number', 978],
    ['an empty text', ''],
    ['a name', 'euro'],
    ['two letters', 'EU'],
    ['a sign', '€'],
    ['digits', '978'],
    ['a code that there is not', 'ABC'],
    ['gold', 'XAU'],
    ['the code for tests', 'XTS'],
    ['no currency', 'XXX'],
    ['one that was withdrawn', 'HRK'],
    ['one that processors count otherwise', 'ISK'],
    ['a letter that becomes ours as a capital', 'ıdr'],
    ['a code and a space', 'EUR '],
    ['a code and a line break', 'EUR\n'],
    ['a code and NUL', 'EUR\0'],
    ['a list', ['EUR']],
  ]),
  ...bad('payment_method', [
    ['nothing', undefined],
    ['null', null],
    ['an empty text', ''],
    ['a number', 4242424242424242],
    ['something with a slash', '../pm_card_visa'],
    ['something with a line break', 'pm_card_visa\n'],
    ['something very long', 'p'.repeat(256)],
    ['an object', { card: 'visa' }],
  ]),
  [
    'a card number in groups as payment_method',
    { body: { ...TEA, payment_method: '4242 4242 4242 4242' } },
    400,
    'card_number',
    'payment_method',
  ],
  ...bad('capture_method', [
    ['another word', 'later'],
    ['capitals', 'MANUAL'],
    ['null', null],
    ['true', true],
  ]),
  ...bad('reference', [
    ['an empty text', ''],
    ['null', null],
    ['a number', 7],
    ['a long text', 'r'.repeat(201)],
    ['a line break', 'order\n7'],
    ['DEL', 'order\x7f7'],
  ]),
  ...bad('payer', [
    ['an empty text', ''],
    ['an object', {}],
    ['a long text', 'p'.repeat(201)],
    ['an escape', '\x1b[31m'],
  ]),
]

const meta = (what: string, metadata: unknown, field: string): Row => [
  what,
  { body: { ...TEA, metadata } },
  400,
  'invalid_request',
  field,
]
const twentyOne = Object.fromEntries(Array.from({ length: 21 }, (_, i) => [`name_${i}`, 'value']))

/** What the client would keep with a payment. */
export const metadata: readonly Row[] = [
  meta('null', null, 'metadata'),
  meta('a text', 'a=b', 'metadata'),
  meta('a list', [], 'metadata'),
  meta('too much', twentyOne, 'metadata'),
  meta('a number', { order: 7 }, 'metadata.order'),
  meta('true', { order: true }, 'metadata.order'),
  meta('null in it', { order: null }, 'metadata.order'),
  meta('an object in it', { order: { id: '7' } }, 'metadata.order'),
  meta('a list in it', { order: ['7'] }, 'metadata.order'),
  meta('a long text', { order: 'v'.repeat(501) }, 'metadata.order'),
  meta('NUL', { order: '\0' }, 'metadata.order'),
  meta('a long name', { ['n'.repeat(41)]: 'v' }, `metadata.${'n'.repeat(41)}`),
  meta('an empty name', { '': 'v' }, 'metadata.'),
  meta('a name with a space', { 'order id': 'v' }, 'metadata.order id'),
  meta('a name with brackets', { 'order[id]': 'v' }, 'metadata.order[id]'),
  meta('a name with a slash', { 'order/id': 'v' }, 'metadata.order/id'),
  meta('a name in other letters', { größe: 'v' }, 'metadata.größe'),
  [
    'a prototype',
    { body: JSON.stringify({ ...TEA, metadata: { x: 'v' } }).replace('"x"', '"__proto__"') },
    400,
    'invalid_request',
    'metadata.__proto__',
  ],
]
