import { OnlyonceError } from '../../core/errors.ts'
import { EMBEDDED_LIMITS } from './limits.ts'
import { isPostmaster, listChildren, processExists, sendSignal } from './process.ts'
import { waitFor } from './wait.ts'

/**
 * Ends a server: first fast (clients are cut off, a checkpoint is written), then, after a bound, at once.
 * Either way nothing that was committed is lost.
 *
 * @example
 * await stopProcess(server.pid, '/var/lib/onlyonce/data')
 */
export async function stopProcess(pid: number, data: string): Promise<void> {
  if (!isPostmaster(pid, data)) return
  // Not isPostmaster: a process that is about to end has no command line any more, and still holds its port.
  const gone = () => (processExists(pid) ? undefined : true)
  sendSignal(pid, 'SIGINT')
  if (await waitFor(gone, EMBEDDED_LIMITS.stopMaxMs)) return
  sendSignal(pid, 'SIGQUIT')
  if (await waitFor(gone, EMBEDDED_LIMITS.quitMaxMs)) return
  throw new OnlyonceError('store_unavailable', {
    detail: `The embedded server, process ${pid}, does not stop.`,
  })
}

/**
 * Ends a server and all its children as a power cut would. The parent is halted first, so that it can neither
 * start another child nor react to the loss of one.
 *
 * @example
 * await killProcess(server.pid, '/var/lib/onlyonce/data')
 */
export async function killProcess(pid: number, data: string): Promise<void> {
  if (!isPostmaster(pid, data)) return
  sendSignal(pid, 'SIGSTOP')
  const family = [pid, ...listChildren(pid)]
  for (const member of family) sendSignal(member, 'SIGKILL')
  const gone = () => (family.some(processExists) ? undefined : true)
  if (await waitFor(gone, EMBEDDED_LIMITS.killMaxMs)) return
  throw new OnlyonceError('store_unavailable', {
    detail: `The embedded server, process ${pid}, survived SIGKILL.`,
  })
}
