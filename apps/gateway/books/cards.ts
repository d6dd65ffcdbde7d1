/** How a card is declined. */
export interface CardDecline {
  readonly code: string
  readonly declineCode: string | null
  readonly adviceCode: string
  readonly message: string
}

export interface Card {
  readonly brand: string
  readonly last4: string
  /** Null for a card that pays. */
  readonly decline: CardDecline | null
}

const DECLINED = 'Your card was declined.'

/** Stripe's test tokens: https://docs.stripe.com/testing */
export const CARDS: ReadonlyMap<string, Card> = new Map<string, Card>([
  ['pm_card_visa', { brand: 'visa', last4: '4242', decline: null }],
  ['pm_card_mastercard', { brand: 'mastercard', last4: '4444', decline: null }],
  declined('', '0002', 'card_declined', 'generic_decline', 'try_again_later', DECLINED),
  declined(
    'InsufficientFunds',
    '9995',
    'card_declined',
    'insufficient_funds',
    'try_again_later',
    'Your card has insufficient funds.',
  ),
  declined('LostCard', '9987', 'card_declined', 'lost_card', 'do_not_try_again', DECLINED),
  declined('StolenCard', '9979', 'card_declined', 'stolen_card', 'do_not_try_again', DECLINED),
  declined('ExpiredCard', '0069', 'expired_card', null, 'do_not_try_again', 'Your card has expired.'),
  declined(
    'IncorrectCvc',
    '0127',
    'incorrect_cvc',
    null,
    'confirm_card_data',
    "Your card's security code is incorrect.",
  ),
  declined(
    'ProcessingError',
    '0119',
    'processing_error',
    null,
    'try_again_later',
    'An error occurred while processing your card. Try again in a little bit.',
  ),
  [
    'pm_card_authenticationRequired',
    {
      brand: 'visa',
      last4: '3184',
      decline: {
        code: 'authentication_required',
        declineCode: 'authentication_required',
        adviceCode: 'try_again_later',
        message: 'Your card was declined. This transaction requires authentication.',
      },
    },
  ],
])

function declined(
  name: string,
  last4: string,
  code: string,
  declineCode: string | null,
  adviceCode: string,
  message: string,
): [string, Card] {
  const decline = { code, declineCode, adviceCode, message }
  return [`pm_card_chargeDeclined${name}`, { brand: 'visa', last4, decline }]
}
