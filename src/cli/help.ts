/** The help, which docs/reference/cli.md repeats word for word. */
import { VERSION } from '../core/version.ts'
import { COMMON, type Command, type Option } from './command.ts'
import { EXIT_MEANINGS } from './exit.ts'

const WIDTH = 100

export function helpOfAll(commands: readonly Command[]): string {
  const width = Math.max(...commands.map(({ name }) => name.length))
  const lines = commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`)
  const exits = EXIT_MEANINGS.map(([code, meaning]) => wrap(`  ${`${code}`.padEnd(3)}  `, meaning))
  return `onlyonce ${VERSION}: the command line of the idempotency layer. It works on its database alone.

Usage: onlyonce <command> [arguments] [options]

Commands:
${lines.join('\n')}

\`onlyonce help <command>\` tells the options of a command.

Exit codes:
${exits.join('\n')}
`
}

export function helpOf(command: Command): string {
  const { name, summary, takes, about, options, examples } = command
  const usage = ['onlyonce', name, ...takes, '[options]'].join(' ')
  const paragraphs = about.map((text) => `${wrap('', text)}\n\n`).join('')
  const own = options.length === 0 ? '' : `Options:\n${optionLines(options)}\n\n`
  const shown = examples.map((example) => `  ${example}`).join('\n')
  return `${summary}

Usage: ${usage}

${paragraphs}${own}Options of every command:
${optionLines(COMMON)}

Examples:
${shown}
`
}

function optionLines(options: readonly Option[]): string {
  const shown = options.map((option) => ({ left: leftOf(option), option }))
  const width = Math.max(...shown.map(({ left }) => left.length))
  return shown.map(({ left, option }) => wrap(`  ${left.padEnd(width)}  `, textOf(option))).join('\n')
}

function leftOf({ name, value }: Option): string {
  return value === undefined ? `--${name}` : `--${name} ${value}`
}

function textOf({ text, many, choices }: Option): string {
  const ofChoices = choices === undefined ? '' : ` One of: ${choices.join(', ')}.`
  return `${text}${ofChoices}${many === undefined ? '' : ' May be given more than once.'}`
}

/** Behind a beginning, which is as wide in the lines after the first. */
function wrap(beginning: string, text: string): string {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && beginning.length + line.length + word.length >= WIDTH) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line]
    .map((one, i) => `${i === 0 ? beginning : ' '.repeat(beginning.length)}${one}`)
    .join('\n')
}
