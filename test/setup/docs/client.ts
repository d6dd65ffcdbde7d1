/** What the blocks about clients take as given: a page, its session, and its functions. */
import type { IdempotentFetch } from '../../../src/client/index.ts'
import type { KeyStorage } from '../../../src/client/keys/index.ts'

export interface Order {
  readonly cart: string
  readonly amount: number
}
export declare const order: Order
export declare const orders: readonly { readonly id: string; readonly amount: number }[]
export declare const cart: { readonly id: string }
export declare const session: { readonly userId: string; readonly token: string }
export declare const pay: IdempotentFetch
export declare const body: string
export declare const localStorage: KeyStorage
export declare const AsyncStorage: KeyStorage
export declare const show: (text: string) => void
export declare const showReceipt: (receipt: unknown) => void
export declare const later: (id: string) => void
export declare const run: { readonly id: string }
export declare const step: { readonly id: string }
