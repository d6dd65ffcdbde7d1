/** A random key. `randomUUID` is missing on pages without TLS, where `getRandomValues` is there. */
export function randomKey(): string {
  if (typeof crypto === 'undefined') {
    throw new TypeError('No crypto here. Import react-native-get-random-values first.')
  }
  if (crypto.randomUUID !== undefined) return crypto.randomUUID()
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
