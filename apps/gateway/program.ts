/** The gateway as a process of its own. Says on its first line where it listens. */
import type { AddressInfo } from 'node:net'
import { FolderTaken, holdFolder } from './folder-lock.ts'
import { API_KEY, FOLDER_TAKEN, PORT_TAKEN, readArguments } from './options.ts'
import { GatewayServer } from './server.ts'

/** How long requests may still take once it was told to end. */
const DRAIN_MAX_MS = 1_000

async function main(): Promise<void> {
  const { host, port, withParent, ...options } = readArguments(process.argv.slice(2), process.env)
  await holdFolder(options.folder)
  const gateway = new GatewayServer(options)
  const server = await gateway.listen(host, port)
  const { address, port: bound } = server.address() as AddressInfo
  // A key that was given is a secret; the usual one is in the README.
  const key = options.apiKey === API_KEY ? API_KEY : 'that of its environment'
  process.stdout.write(`The sandbox gateway listens on http://${address}:${bound}, API key ${key}\n`)
  const end = () => {
    // What is held, or waits for a clock, is answered by nobody: its connection ends, as when a process dies.
    setTimeout(() => server.closeAllConnections(), DRAIN_MAX_MS).unref()
    server.close(async () => {
      await gateway.close()
      process.exit(0)
    })
    server.closeIdleConnections()
  }
  process.once('SIGTERM', end).once('SIGINT', end)
  // Whoever started it holds its standard input, and lets go of it by dying.
  if (withParent) process.stdin.resume().on('end', () => process.exit(0))
}

main().catch((error: NodeJS.ErrnoException) => {
  process.stderr.write(`The sandbox gateway did not start: ${error.message}\n`)
  if (error instanceof FolderTaken) process.exit(FOLDER_TAKEN)
  process.exit(error.code === 'EADDRINUSE' ? PORT_TAKEN : 1)
})
