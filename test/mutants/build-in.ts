/** A small change of one file, by text. */
export interface FaultyFile {
  readonly name: string
  readonly file: string
  readonly edits: readonly { readonly from: string; readonly to: string }[]
}

/** The text of a file with a fault in it. Throws where the file has changed and the fault does not fit any more. */
export function buildIn({ name, file, edits }: FaultyFile, sound: string): string {
  let text = sound
  for (const { from, to } of edits) {
    if (text.split(from).length !== 2) throw new Error(`${name}: not exactly once in ${file}: ${from}`)
    text = text.replace(from, () => to)
  }
  return text
}
