import type { Socket } from 'node:net'

/** Closes with RST. A socket that is still connecting has nobody to reset. */
export function resetSocket(socket: Socket): void {
  if (socket.destroyed) return
  if (socket.connecting) socket.destroy()
  else socket.resetAndDestroy()
}
