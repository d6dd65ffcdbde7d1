import { OnlyonceError } from '../errors.ts'

/** Asks whose request it is. Whatever is not a name is nobody; a mistake of the application's is its own error. */
export async function accountOf<Given extends readonly unknown[]>(
  account: (...given: Given) => string | null | undefined | Promise<string | null | undefined>,
  ...given: Given
): Promise<string | null> {
  if (typeof account !== 'function') {
    throw new OnlyonceError('option_invalid', {
      detail: 'account is a function that tells whose request it is.',
    })
  }
  return (await account(...given)) ?? null
}
