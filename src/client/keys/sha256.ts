/**
 * SHA-256, because WebCrypto answers later, and is missing in React Native and on pages without TLS. Nothing secret is hashed. A test compares
 * it with Node.js.
 */

/** The first 32 bits of the fractions of the roots of the first primes. */
const fractions = (root: number, count: number): number[] => {
  const found: number[] = []
  for (let n = 2; found.length < count; n++) {
    let prime = true
    for (let d = 2; d * d <= n; d++) if (n % d === 0) prime = false
    if (prime) found.push((n ** (1 / root) * 2 ** 32) | 0)
  }
  return found
}

const CONSTANTS = /* @__PURE__ */ fractions(3, 64)

/** The digest as 64 hexadecimal digits. */
export function sha256(data: string | Uint8Array): string {
  const bytes = typeof data === 'string' ? new TextEncoder().encode(data) : data
  const padded = new Uint8Array((((bytes.length + 8) >> 6) << 6) + 64)
  padded.set(bytes)
  padded[bytes.length] = 0x80
  const view = new DataView(padded.buffer)
  view.setUint32(padded.length - 8, Math.floor(bytes.length / 2 ** 29))
  view.setUint32(padded.length - 4, bytes.length << 3)
  const hash = fractions(2, 8)
  const w = new Int32Array(64)
  const turn = (x: number, n: number) => (x >>> n) | (x << (32 - n))
  for (let at = 0; at < padded.length; at += 64) {
    let [a, b, c, d, e, f, g, h] = hash as [number, number, number, number, number, number, number, number]
    for (let i = 0; i < 64; i++) {
      const x = w[i - 15]!
      const y = w[i - 2]!
      w[i] =
        i < 16
          ? view.getInt32(at + 4 * i)
          : w[i - 16]! +
            w[i - 7]! +
            (turn(x, 7) ^ turn(x, 18) ^ (x >>> 3)) +
            (turn(y, 17) ^ turn(y, 19) ^ (y >>> 10))
      const t1 = h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + CONSTANTS[i]! + w[i]!
      const t2 = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))
      ;[h, g, f, e, d, c, b, a] = [g, f, e, (d + t1) | 0, c, b, a, (t1 + t2) | 0]
    }
    for (const [i, value] of [a, b, c, d, e, f, g, h].entries()) hash[i] = (hash[i]! + value) | 0
  }
  return hash.map((word) => (word >>> 0).toString(16).padStart(8, '0')).join('')
}
