/** What blocks with routes of Express take as given. */
import express from 'express'

export { express }
export declare const app: express.Express
export declare const account: () => string
export declare const createOrder: express.RequestHandler
export declare const underLimit: (account: string) => Promise<boolean>
export declare const shops: { exists(id: string): Promise<boolean> }
export declare const readPayment: (request: { body: unknown }) => { amount: number }
