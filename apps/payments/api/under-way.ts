import type { Socket } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** What is called when a connection closes. */
const waiting = new WeakMap<Socket, Set<() => void>>()

/**
 * Calls `leave` once: when the request is answered, or when its connection is gone. The connection may be gone already, because a client
 * can hang up while its API key is looked up, and Node emits `close` once. Of requests that were sent behind each other on one connection
 * Node closes only the response that it is sending, so the connection itself is listened to, by one listener for all of its requests.
 */
export function whenOver(
  { raw: { socket } }: Pick<FastifyRequest, 'raw'>,
  { raw: response }: Pick<FastifyReply, 'raw'>,
  leave: () => void,
): void {
  if (response.closed || socket.destroyed) {
    leave()
    return
  }
  const those = waitingOn(socket)
  const over = () => {
    if (those.delete(over)) leave()
  }
  those.add(over)
  response.once('close', over)
}

function waitingOn(socket: Socket): Set<() => void> {
  const known = waiting.get(socket)
  if (known !== undefined) return known
  const made = new Set<() => void>()
  waiting.set(socket, made)
  socket.once('close', () => {
    for (const over of [...made]) over()
  })
  return made
}
