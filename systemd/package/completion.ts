/** Completion for bash: commands by their words, then the options of the command that was named. */
import type { Command } from 'commander';
import { leaves } from './manual.ts';

/** The script that bash-completion loads when `kit-connector` is typed. Values of options are completed as names of files. */
export function completionScript(program: Command): string {
  const commands = leaves(program);
  const branches = new Map<string, Set<string>>([['', new Set()]]);
  for (const { words } of commands) {
    const path = words.split(' ');
    path.forEach((word, at) => {
      const before = path.slice(0, at).join(' ');
      branches.set(before, (branches.get(before) ?? new Set()).add(word));
    });
  }
  const options = commands.flatMap(({ command }) => command.options);
  const valued = options
    .filter(({ required, optional }) => required || optional)
    .flatMap(({ long, short }) => [long, short].filter((flag) => flag !== undefined));
  const cases = [
    ...[...branches].map(([words, next]) => caseLine(words, [...next])),
    ...commands.map(({ words, command }) =>
      caseLine(
        words,
        command.options.flatMap(({ long }) => (long ? [long] : [])),
      ),
    ),
  ];
  return `# bash completion for kit-connector
_kit_connector() {
  local current=\${COMP_WORDS[COMP_CWORD]} words='' word next choices='' is_value=''
  local commands='|${[...branches.keys(), ...commands.map(({ words }) => words)].filter(Boolean).join('|')}|'
  local valued=' ${[...new Set(valued)].join(' ')} '
  COMPREPLY=()
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    if [[ $is_value ]]; then is_value=''; continue; fi
    if [[ $word == -* ]]; then
      [[ $valued == *" $word "* ]] && is_value=1
      continue
    fi
    next="\${words:+$words }$word"
    [[ $commands == *"|$next|"* ]] && words=$next
  done
  [[ $is_value ]] && return
  case $words in
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$choices" -- "$current"))
}
complete -o default -F _kit_connector kit-connector
`;
}

function caseLine(words: string, choices: readonly string[]): string {
  return `    '${words}') choices='${choices.join(' ')}' ;;`;
}
