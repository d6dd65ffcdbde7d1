/** What the blocks about tests take as given. */
import type Stripe from 'stripe'

export declare const pay: (stripe: Stripe, key: string) => Promise<void>
