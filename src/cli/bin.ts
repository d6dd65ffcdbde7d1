#!/usr/bin/env node
/** The program `onlyonce`. */
import { main } from './main.ts'

const interrupted = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    // A person who asks twice does not want to wait for the batch that runs: it is one transaction, which the server rolls back.
    if (interrupted.signal.aborted) process.exit(signal === 'SIGINT' ? 130 : 143)
    interrupted.abort(signal)
  })
}
// A reader that has seen enough, such as `head`, closes the pipe: that is no fault.
process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => process.exit(code === 'EPIPE' ? 0 : 70))

const { stdin, stdout, stderr, env } = process
main(process.argv.slice(2), { stdin, stdout, stderr, env, signal: interrupted.signal }).then((code) => {
  process.exitCode = code
})
