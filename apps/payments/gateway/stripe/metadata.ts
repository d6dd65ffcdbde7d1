/**
 * What our calls write into Stripe's objects, so that it can be found by the call's key later. Stripe allows 50 entries with
 * names of up to 40 and values of up to 500 characters, and a capture adds its entries to those of the intent.
 */
export const KEY_ENTRY = 'onlyonce_key'
export const METADATA_VALUE_MAX = 500

const CAPTURE_PREFIX = 'capture_'

/** 30 characters of base64url are 180 bits of the key; the whole key stands in the value. */
export function captureEntry(key: string): string {
  return `${CAPTURE_PREFIX}${key.slice(0, 30)}`
}

export interface CaptureEntry {
  readonly amount: number
  readonly capture: string
  readonly key: string
}

/** In one request with the capture itself: the entry is there if, and only if, the capture was made. */
export function captureMetadata({ amount, capture, key }: CaptureEntry): Record<string, string> {
  return { [captureEntry(key)]: `${amount} ${capture} ${key}` }
}

export function capturesOf(metadata: Readonly<Record<string, string>> | null): Map<string, CaptureEntry> {
  const found = new Map<string, CaptureEntry>()
  for (const [name, value] of Object.entries(metadata ?? {})) {
    if (!name.startsWith(CAPTURE_PREFIX)) continue
    const parts = /^(\d{1,16}) (\S{1,100}) ([\w-]{30,255})$/.exec(value)
    if (parts === null || captureEntry(parts[3]!) !== name) continue
    found.set(name, { amount: Number(parts[1]), capture: parts[2]!, key: parts[3]! })
  }
  return found
}
