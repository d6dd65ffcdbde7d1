/** The sandbox processor of a development's folder, for processes that did not start it. */
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  FOLDER_TAKEN,
  type GatewayOptions,
  type GatewayProcess,
  NotStarted,
  readToken,
  startGateway as start,
  TOKEN_FILE,
} from '../gateway/index.ts'

const ANSWER_MAX_MS = 5_000
const STARTS_MAX = 20
const START_PAUSE_MS = 250

/** Starts a sandbox, and notes in its folder where it listens. A folder has one sandbox at a time. */
export async function startGateway(
  options: GatewayOptions & { readonly folder: string },
): Promise<Pick<GatewayProcess, 'url' | 'stop'>> {
  const gateway = await start(options)
  const note = noteIn(options.folder)
  await writeFile(note, gateway.url, { mode: 0o600 })
  return {
    url: gateway.url,
    async stop() {
      await rm(note, { force: true })
      await gateway.stop()
    },
  }
}

/**
 * The sandbox of a folder: the one that another process has started there, which is only let go of at the end, or else one that is started. Two on
 * one journal would each know a half of it.
 */
export async function shareGateway(
  options: GatewayOptions & { readonly folder: string },
): Promise<Pick<GatewayProcess, 'url' | 'stop'>> {
  for (let tries = 1; ; tries += 1) {
    const url = await findGateway(options.folder)
    if (url !== null) return { url, async stop() {} }
    try {
      return await startGateway(options)
    } catch (error) {
      // Another process starts it at this moment, and notes where it listens when it does.
      const taken = error instanceof NotStarted && error.exitCode === FOLDER_TAKEN
      if (!taken || tries === STARTS_MAX) throw error
      await sleep(START_PAUSE_MS)
    }
  }
}

/** Where the sandbox listens that another process has started in this folder; null if none does. */
export async function findGateway(folder: string): Promise<string | null> {
  const url = await readFile(noteIn(folder), 'utf8').catch(() => null)
  if (url === null) return null
  // The note of one that was killed is still there, and nobody answers.
  const signal = AbortSignal.timeout(ANSWER_MAX_MS)
  const headers = { authorization: `Bearer ${readToken(join(folder, TOKEN_FILE))}` }
  const answer = await fetch(`${url}/_sandbox/state`, { signal, headers }).catch(() => null)
  await answer?.body?.cancel()
  return answer?.ok ? url : null
}

function noteIn(folder: string): string {
  return join(folder, 'address')
}
