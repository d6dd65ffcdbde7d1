import { blank } from './source-text.ts'

/** The names of what a text imports, at its top or later. */
export function importsOf(text: string): string[] {
  const code = blank(text, ['comment', 'regexp'])
  return [...code.matchAll(/(?:^|[\s;}])(?:from|import)\s*\(?\s*'([^'\n]+)'/g)].map((found) => found[1]!)
}

export function isTest(path: string): boolean {
  return /\.test(?:-d)?\.ts$/.test(path)
}

/** Whether a path is one of these places, or in one of them; folders end with a slash. */
export function within(path: string, places: readonly string[]): boolean {
  return places.some((place) => path === place || (place.endsWith('/') && path.startsWith(place)))
}

/** src/store/postgres/index.ts is in `store`, src/index.ts is `index`. The adapters are a room inside of another. */
export function roomOf(path: string): string {
  if (path.startsWith('src/http/adapters/')) return 'http/adapters'
  const [, room = ''] = path.split('/')
  return room.replace(/\.ts$/, '')
}
