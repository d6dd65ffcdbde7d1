/** Scripts by which shells complete commands and options. Made from the table of commands, so that none is forgotten. */
import { COMMON, type Command } from './command.ts'

export type Shell = 'bash' | 'zsh'

export function completionScript(shell: Shell, commands: readonly Command[]): string {
  const script = bash(commands)
  return shell === 'bash'
    ? `${script}complete -F _onlyonce onlyonce\n`
    : `#compdef onlyonce\n${zsh(commands)}`
}

function optionsOf(command: Command): string[] {
  return [...command.options, ...COMMON].map(({ name }) => `--${name}`)
}

/** The first words of commands, and the second words of those that have one. */
function wordsOf(commands: readonly Command[]): ReadonlyMap<string, readonly string[]> {
  const words = new Map<string, string[]>([['help', []]])
  for (const { name } of commands) {
    const [first, second] = name.split(' ') as [string, string | undefined]
    words.set(first, [...(words.get(first) ?? []), ...(second === undefined ? [] : [second])])
  }
  return words
}

/** Values of the options that take only a few. */
function choicesOf(commands: readonly Command[]): ReadonlyMap<string, readonly string[]> {
  const all = [...commands.flatMap(({ options }) => options), ...COMMON]
  return new Map(
    all.flatMap(({ name, choices }) => (choices === undefined ? [] : [[name, choices] as const])),
  )
}

function bash(commands: readonly Command[]): string {
  const words = wordsOf(commands)
  const seconds = [...words].filter(([, more]) => more.length > 0)
  return `_onlyonce() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}"
  local first="\${COMP_WORDS[1]}" name="\${COMP_WORDS[1]}"
  COMPREPLY=()
  case "$prev" in
${[...choicesOf(commands)].map(([name, choices]) => `    --${name}) COMPREPLY=($(compgen -W "${choices.join(' ')}" -- "$cur")); return ;;`).join('\n')}
    --*-file) COMPREPLY=($(compgen -f -- "$cur")); return ;;
  esac
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "${[...words.keys()].join(' ')}" -- "$cur")); return
  fi
  case "$first" in
${seconds.map(([first, more]) => `    ${first}) if [ "$COMP_CWORD" -eq 2 ]; then COMPREPLY=($(compgen -W "${more.join(' ')}" -- "$cur")); return; fi; name="$first \${COMP_WORDS[2]}" ;;`).join('\n')}
    help) COMPREPLY=($(compgen -W "${[...words.keys()].join(' ')}" -- "$cur")); return ;;
  esac
  case "$name" in
${commands.map((command) => `    "${command.name}") COMPREPLY=($(compgen -W "${optionsOf(command).join(' ')}" -- "$cur")) ;;`).join('\n')}
  esac
}
`
}

function zsh(commands: readonly Command[]): string {
  const words = wordsOf(commands)
  const seconds = [...words].filter(([, more]) => more.length > 0)
  return `_onlyonce() {
  local name="\${words[2]}"
  case "\${words[CURRENT-1]}" in
${[...choicesOf(commands)].map(([name, choices]) => `    --${name}) compadd -- ${choices.join(' ')}; return ;;`).join('\n')}
    --*-file) _files; return ;;
  esac
  if (( CURRENT == 2 )); then
    compadd -- ${[...words.keys()].join(' ')}; return
  fi
  case "$name" in
${seconds.map(([first, more]) => `    ${first}) if (( CURRENT == 3 )); then compadd -- ${more.join(' ')}; return; fi; name="${first} \${words[3]}" ;;`).join('\n')}
    help) compadd -- ${[...words.keys()].join(' ')}; return ;;
  esac
  case "$name" in
${commands.map((command) => `    "${command.name}") compadd -- ${optionsOf(command).join(' ')} ;;`).join('\n')}
  esac
}
if [ "$funcstack[1]" = _onlyonce ]; then _onlyonce "$@"; else compdef _onlyonce onlyonce; fi
`
}
