import { Refused } from '../problems.ts'
import { API_LIMITS } from './limits.ts'

/** The schema counts characters, of which one may take four bytes, and the database keeps bytes. */
export function refuseLargeMetadata(body: unknown): void {
  const metadata = (body as { metadata?: unknown } | null | undefined)?.metadata
  if (typeof metadata !== 'object') return
  const { metadataMaxBytes } = API_LIMITS
  if (Buffer.byteLength(JSON.stringify(metadata)) <= metadataMaxBytes) return
  throw new Refused('invalid_request', {
    field: 'metadata',
    detail: `metadata takes more than ${metadataMaxBytes} bytes as JSON in UTF-8.`,
  })
}
