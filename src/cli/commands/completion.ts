import type { Command } from '../command.ts'
import { completionScript, type Shell } from '../completion.ts'
import { EXIT, usage } from '../exit.ts'

/** Given all commands, of which it is one itself. */
export function completionOf(all: () => readonly Command[]): Command {
  return {
    name: 'completion',
    summary: 'Prints a script by which bash or zsh completes commands and options.',
    takes: ['<shell>'],
    about: ['The shell is bash or zsh.'],
    options: [],
    examples: ['source <(onlyonce completion bash)', 'source <(onlyonce completion zsh)'],
    async run({ given, output }) {
      const shell = given[0]!
      if (shell !== 'bash' && shell !== 'zsh') throw usage('There is completion for bash and for zsh.')
      output.text(completionScript(shell satisfies Shell, all()))
      return EXIT.ok
    },
  }
}
