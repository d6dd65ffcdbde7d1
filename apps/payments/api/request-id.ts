import type { IncomingMessage } from 'node:http'
import { holdsCardNumber } from 'onlyonce/keys'
import { makeId } from '../ids.ts'

/** One that came with the request is taken where it can stand in a log and in a header without harm. */
const SANE = /^[A-Za-z0-9][A-Za-z0-9._:-]{7,127}$/

export function requestIdOf({ headers }: Pick<IncomingMessage, 'headers'>): string {
  const given = headers['x-request-id']
  const sane = typeof given === 'string' && SANE.test(given) && !holdsCardNumber(given)
  return sane ? given : makeId('req')
}
