import { OnlyonceError } from '../../core/errors.ts'
import { refuseUnknown } from '../../core/options.ts'
import { POLICY_NAMES, type RoutePolicy } from '../index.ts'

type Account<Given extends readonly unknown[]> = (
  ...given: Given
) => string | null | undefined | Promise<string | null | undefined>

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
  throw new OnlyonceError('option_invalid', {
    detail: `${owner}: account is a function that tells whose request it is.`,
  })
}

/** Asks whose request it is. A value that is no name is no account; a mistake of the application's is its own error. */
export async function accountOf<Given extends readonly unknown[]>(
  account: Account<Given>,
  ...given: Given
): Promise<string | null> {
  return (await account(...given)) ?? null
}
