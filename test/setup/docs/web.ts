/** What blocks with routes of Express take as given that are not protected. */
import express from 'express'

export { express }
export declare const app: express.Express
export declare const accountOf: (request: express.Request) => string
