/** A payment server of its own for the checkout to kill: `apps/payments/main.ts`, which also ends when the process that started it does. */

// The parent holds this process's standard input. The operating system closes it when the parent ends, in whatever way.
process.stdin.resume().on('end', () => process.exit(0))

await import('../../payments/main.ts')
