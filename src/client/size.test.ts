import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { describe, expect, it } from 'vitest'

const FOLDER = fileURLToPath(new URL('.', import.meta.url))

/** What a page loads that imports these names: minified, as a bundler leaves it. */
async function bundleOf(names: string) {
  const { outputFiles, metafile } = await build({
    stdin: { contents: `export ${names} from './index.ts'`, resolveDir: FOLDER, loader: 'ts' },
    bundle: true,
    minify: true,
    write: false,
    metafile: true,
    format: 'esm',
    platform: 'neutral',
    target: 'es2022',
  })
  return {
    bytes: gzipSync(outputFiles[0]!.contents, { level: 9 }).length,
    inputs: Object.keys(metafile.inputs),
  }
}

describe('what a page loads, gzipped', () => {
  it.each([
    ['a fetch with its three errors', '{ idempotentFetch, NotExecuted, Executed, OutcomeUnknown }', 5_000],
    ['pending actions alone', '{ pendingAction }', 3_700],
    ['all of it', '*', 8_200],
  ])('%s', async (_, names, maxBytes) => {
    const { bytes } = await bundleOf(names)
    expect(bytes).toBeLessThan(maxBytes)
    // A bound that is far away says nothing.
    expect(bytes).toBeGreaterThan(maxBytes * 0.85)
  })

  it('is of this folder alone: no package, nothing of Node.js, nothing of the server', async () => {
    const { inputs } = await bundleOf('*')
    expect(inputs.filter((input) => !/^(?:src\/client\/|<stdin>$)/.test(input))).toEqual([])
  })
})
