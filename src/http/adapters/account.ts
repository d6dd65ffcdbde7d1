import { OnlyonceError } from '../../core/errors.ts'
import { refuseUnknown } from '../../core/options.ts'
import { checkName } from '../../key/scope.ts'
import { POLICY_NAMES, type RoutePolicy } from '../index.ts'
import { namingRoute } from '../policy-checks.ts'

/** What tells whose request it is: a function of what the framework gives, or the one account of a service with one tenant. */
export type Account<Given extends readonly unknown[]> =
  | string
  | ((...given: Given) => string | null | undefined | Promise<string | null | undefined>)

/**
 * Takes the account out of the options of an adapter; the rest is the policy. A layer that cannot tell whose request it is
 * would refuse every request, so it is not made at all.
 */
export function accountAndPolicy<Given extends readonly unknown[]>(
  layer: string,
  options: RoutePolicy & { readonly account: Account<Given> },
): { readonly account: Account<Given>; readonly policy: RoutePolicy } {
  const owner = withOperation(layer, options)
  refuseUnknown(owner, options, WITH_ACCOUNT)
  const { account, ...policy } = options
  checkAccount(owner, account)
  return { account, policy }
}

/** The route is not known yet where a layer is made for it; its operation is, where it has a name. */
function withOperation(layer: string, options: RoutePolicy | undefined): string {
  const name: unknown = typeof options?.operation === 'object' ? options.operation?.name : options?.operation
  return typeof name === 'string' && name !== '' ? `${name}: ${layer}` : layer
}

export const WITH_ACCOUNT = { ...POLICY_NAMES, account: true } as const

export function checkAccount(owner: string, account: unknown): void {
  if (typeof account === 'function') return
  if (typeof account !== 'string') {
    throw new OnlyonceError('option_invalid', {
      detail: `${owner}: account is a function that tells whose request it is, or the name of the only account.`,
    })
  }
  namingRoute(owner, () => checkName(account, 'account_invalid'))
}

/** Asks whose request it is. A value that is no name is no account; a mistake of the application's is its own error. */
export async function accountOf<Given extends readonly unknown[]>(
  account: Account<Given>,
  ...given: Given
): Promise<string | null> {
  return (typeof account === 'string' ? account : await account(...given)) ?? null
}

/** A handler that is no function would be found by the first request. */
export function checkHandler(owner: string, handler: unknown): void {
  if (typeof handler === 'function') return
  throw new OnlyonceError('option_invalid', { detail: `${owner}: the handler is a function.` })
}

/** A durable operation answers its requests itself: a handler beside it would never run. */
export function refuseHandler(owner: string, handler: unknown): void {
  if (handler === undefined) return
  throw new OnlyonceError('option_invalid', {
    detail: `${owner}: a durable operation answers its requests itself, so it takes no handler.`,
  })
}
