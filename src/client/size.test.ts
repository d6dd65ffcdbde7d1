import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { describe, expect, it } from 'vitest'

const FOLDER = fileURLToPath(new URL('.', import.meta.url))

const CLIENT = { './index.ts': '*' }
const KEYS = { './keys/index.ts': '*' }

/** What a page loads that imports these names of these modules: minified, as a bundler leaves it. */
async function bundleOf(names: Readonly<Record<string, string>>) {
  const lines = Object.entries(names).map(([file, what]) => `export ${what} from '${file}'`)
  const { outputFiles, metafile } = await build({
    stdin: { contents: lines.join('\n'), resolveDir: FOLDER, loader: 'ts' },
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
    ['all of onlyonce/client', CLIENT, 5_000],
    ['all of onlyonce/client/keys', KEYS, 4_700],
    ['businessKey alone', { './keys/index.ts': '{ businessKey }' }, 1_000],
    ['pendingAction alone', { './keys/index.ts': '{ pendingAction }' }, 3_700],
    ['both doors', { ...CLIENT, ...KEYS }, 8_200],
  ])('%s', async (_, names, maxBytes) => {
    const { bytes } = await bundleOf(names)
    expect(bytes).toBeLessThan(maxBytes)
    // A bound that is far away says nothing.
    expect(bytes).toBeGreaterThan(maxBytes * 0.85)
  })

  it('is of this folder alone: no package, nothing of Node.js, nothing of the server', async () => {
    const { inputs } = await bundleOf({ ...CLIENT, ...KEYS })
    expect(inputs.filter((input) => !/^(?:src\/client\/|<stdin>$)/.test(input))).toEqual([])
  })

  it('is the fetch alone in onlyonce/client: nothing of keys is loaded', async () => {
    const { inputs } = await bundleOf(CLIENT)
    expect(inputs.filter((input) => input.includes('/keys/'))).toEqual([])
  })
})
