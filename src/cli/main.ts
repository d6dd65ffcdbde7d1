/** The command line, as a function: what the process does with its arguments, and tests with theirs. */
import { VERSION } from '../core/version.ts'
import { findCommand, readArguments, unknownCommand } from './arguments.ts'
import type { Command } from './command.ts'
import { COMMANDS } from './commands.ts'
import { EXIT, type ExitCode, tellError, usage } from './exit.ts'
import { helpOf, helpOfAll } from './help.ts'
import { type Io, Output } from './io.ts'
import { hideSecrets, readSettings } from './settings.ts'

/**
 * Runs a command, and tells with which code the process ends. Never throws.
 *
 * @example
 * process.exitCode = await main(process.argv.slice(2), io)
 */
export async function main(argv: readonly string[], io: Io): Promise<ExitCode> {
  const output = new Output(io, argv.includes('--json'))
  hideSecrets(io, output)
  try {
    return await run(argv, io, output)
  } catch (error) {
    const { exitCode, code, message } = tellError(error)
    output.error(code, message)
    return io.signal.aborted ? interruptedBy(io.signal) : exitCode
  }
}

async function run(argv: readonly string[], io: Io, output: Output): Promise<ExitCode> {
  const { command, rest, words } = findCommand(COMMANDS, argv)
  if (command === null) return withoutCommand(argv, words, output)
  const { values, given } = readArguments(command, rest)
  if (values.has('help')) {
    output.text(helpOf(command))
    return EXIT.ok
  }
  const settings = readSettings(values, io, output)
  const exitCode = await command.run({ values, given, io, output, settings })
  return io.signal.aborted ? interruptedBy(io.signal) : exitCode
}

function withoutCommand(argv: readonly string[], words: readonly string[], output: Output): ExitCode {
  if (words[0] === 'help') {
    output.text(helpFor(argv.filter((word) => word !== 'help')))
    return EXIT.ok
  }
  if (words.length > 0) throw unknownCommand(COMMANDS, words)
  if (argv.includes('--version')) output.text(`${VERSION}\n`)
  else if (argv.includes('--help') || argv.includes('-h')) output.text(helpOfAll(COMMANDS))
  else throw usage(`A command is needed.\n\n${helpOfAll(COMMANDS)}`)
  return EXIT.ok
}

function helpFor(argv: readonly string[]): string {
  const { command, words } = findCommand(COMMANDS, argv)
  if (command !== null) return helpOf(command)
  if (words.length === 0) return helpOfAll(COMMANDS)
  const group: readonly Command[] = COMMANDS.filter(({ name }) => name.startsWith(`${words[0]} `))
  if (group.length === 0) throw unknownCommand(COMMANDS, words)
  return group.map(helpOf).join('\n')
}

function interruptedBy({ reason }: AbortSignal): ExitCode {
  return reason === 'SIGTERM' ? EXIT.terminated : EXIT.interrupted
}
