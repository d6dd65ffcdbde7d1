import type { ServerResponse } from 'node:http'
import { resultOf } from './ledger.ts'
import type { Entry } from './wire.ts'

/** 201 for what was done, 402 for what was declined: the same whenever it is told. */
export function answerEntry(response: ServerResponse, entry: Entry): void {
  answer(response, entry.status === 'succeeded' ? 201 : 402, resultOf(entry))
}

export function answer(response: ServerResponse, status: number, body: unknown): void {
  send(response, status, JSON.stringify(body))
}

export function refuse(response: ServerResponse, status: number, code: string): void {
  answer(response, status, { error: { code } })
}

/** An answer that says that it is whole, and is not JSON. */
export function answerHalf(response: ServerResponse, entry: Entry): void {
  const text = JSON.stringify(resultOf(entry))
  send(response, 201, text.slice(0, text.length / 2))
}

function send(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
  })
  response.end(text)
}
