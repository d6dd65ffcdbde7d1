/** A process that runs tests of a copy of the project, again and again: most of a run of one test is the start of Vitest otherwise. */
import { join } from 'node:path'
import { createVitest, type TestCase, type TestModule } from 'vitest/node'
import type { Answer, Asked, Failure } from './tester.ts'

const root = process.cwd()
const config = process.argv[2]
/** What the run at hand has tried: Vitest itself also tells of runs before it. */
let tried: TestModule[] = []
const vitest = await createVitest('test', {
  root,
  ...(config && { config }),
  watch: false,
  bail: 1,
  reporters: [{ onTestModuleEnd: (module) => void tried.push(module) }],
  typecheck: { enabled: false },
  // Modules are found by a hash of their text, so one with a fault in it is never taken for the sound one.
  experimental: { fsModuleCache: true, fsModuleCachePath: join(root, 'mutant-modules') },
})

/** By the last run: they are sound again. */
let changedBefore: readonly string[] = []

process.on('message', async (asked: Asked) => {
  const answer = await run(asked).catch((error): Answer => ({ error: String(error) }))
  process.send!(answer)
})
process.on('disconnect', () => vitest.exit(true))
process.send!('ready')

async function run({ changed, tests, only }: Asked): Promise<Answer> {
  for (const file of [...changedBefore, ...changed]) vitest.invalidateFile(join(root, file))
  changedBefore = changed
  if (only === undefined) vitest.resetGlobalTestNamePattern()
  else vitest.setGlobalTestNamePattern(only)
  // Files, and folders of them.
  const wanted = await vitest.globTestSpecifications(tests.map((path) => join(root, path)))
  tried = []
  const { unhandledErrors } = await vitest.runTestSpecifications(wanted)
  const failure = failureIn(tried)
  // A run that fails without a test that fails has noticed nothing.
  if (failure === null && unhandledErrors.length > 0) return { error: String(unhandledErrors[0]) }
  if (tried.length === 0) return { error: 'No test was run.' }
  return { failure }
}

function failureIn(modules: readonly TestModule[]): Failure | null {
  for (const { children, relativeModuleId: file } of modules) {
    const [failed] = children.allTests('failed')
    if (failed !== undefined) return { file, test: nameOf(failed) }
  }
  const broken = modules.find((module) => module.state() === 'failed')
  return broken === undefined ? null : { file: broken.relativeModuleId }
}

/** As Vitest compares it with a pattern. */
function nameOf(test: TestCase): string {
  const names = [test.name]
  for (let { parent } = test; parent.type === 'suite'; { parent } = parent) names.unshift(parent.name)
  return names.join(' ')
}
