import type { Socket } from 'node:net'

/**
 * Closes with RST. A socket that is still connecting has no peer to reset. One whose end is under way cannot be reset: the
 * system refuses, and then Node.js 20 never closes the socket.
 */
export function resetSocket(socket: Socket): void {
  if (socket.destroyed) return
  const ending = socket.writableEnded && !socket.writableFinished
  if (socket.connecting || ending) socket.destroy()
  else socket.resetAndDestroy()
}
