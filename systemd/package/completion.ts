/** Completion for bash, zsh and fish: commands by their words, then the options of the command that was named. */
import type { Command, Option } from 'commander';
import { leaves } from './manual.ts';

/** What may follow: the words behind other words, and the options of each command. */
interface Grammar {
  /** The typed words, separated by spaces, and the words that may follow. */
  readonly branches: ReadonlyMap<string, ReadonlySet<string>>;
  readonly commands: readonly { readonly words: string; readonly options: readonly Option[] }[];
  /** Of the program itself. */
  readonly general: readonly Option[];
  /** Flags behind which a value stands. */
  readonly valued: readonly string[];
}

function grammarOf(program: Command): Grammar {
  const help = program.createHelp();
  const commands = leaves(program).map(({ words, command }) => ({
    words,
    // Its own, and `--help`.
    options: help.visibleOptions(command),
  }));
  const branches = new Map<string, Set<string>>([['', new Set()]]);
  for (const { words } of commands) {
    const path = words.split(' ');
    path.forEach((word, at) => {
      const before = path.slice(0, at).join(' ');
      branches.set(before, (branches.get(before) ?? new Set()).add(word));
    });
  }
  const valued = commands
    .flatMap(({ options }) => options)
    .filter(({ required, optional }) => required || optional)
    .flatMap(({ long, short }) => [long, short].filter((flag) => flag !== undefined));
  return { branches, commands, general: help.visibleOptions(program), valued: [...new Set(valued)] };
}

/** Every place of the command line with what may come next there. */
function choices({
  branches,
  commands,
  general,
}: Grammar): readonly (readonly [words: string, next: string])[] {
  return [
    ...Array.from(
      branches,
      ([words, next]) => [words, [...next, ...(words === '' ? longOf(general) : [])].join(' ')] as const,
    ),
    ...commands.map(({ words, options }) => [words, longOf(options).join(' ')] as const),
  ];
}

function longOf(options: readonly Option[]): readonly string[] {
  return options.flatMap(({ long }) => (long ? [long] : []));
}

function allWords({ branches, commands }: Grammar): string {
  const known = [...branches.keys(), ...commands.map(({ words }) => words)].filter(Boolean);
  return `|${[...new Set(known)].join('|')}|`;
}

/** The script that bash-completion loads when `kit-connector` is typed. Values of options are completed as names of files. */
export function completionScript(program: Command): string {
  const grammar = grammarOf(program);
  return `# bash completion for kit-connector
_kit_connector() {
  local current=\${COMP_WORDS[COMP_CWORD]} words='' word next choices='' is_value=''
  local commands='${allWords(grammar)}'
  local valued=' ${grammar.valued.join(' ')} '
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
${caseLines(grammar)}
  esac
  COMPREPLY=($(compgen -W "$choices" -- "$current"))
}
complete -o default -F _kit_connector kit-connector
`;
}

function caseLines(grammar: Grammar): string {
  return choices(grammar)
    .map(([words, next]) => `    '${words}') choices='${next}' ;;`)
    .join('\n');
}

/** The function that zsh loads by the name of its file, `_kit-connector`. */
export function zshCompletion(program: Command): string {
  const grammar = grammarOf(program);
  return `#compdef kit-connector
# zsh completion for kit-connector
local typed='' word next choices='' is_value=''
local commands='${allWords(grammar)}'
local valued=' ${grammar.valued.join(' ')} '
local -i at
for ((at = 2; at < CURRENT; at++)); do
  word=\${words[at]}
  if [[ -n $is_value ]]; then is_value=''; continue; fi
  if [[ $word == -* ]]; then
    [[ $valued == *" $word "* ]] && is_value=1
    continue
  fi
  next="\${typed:+$typed }$word"
  [[ $commands == *"|$next|"* ]] && typed=$next
done
if [[ -n $is_value ]]; then _files; return; fi
case $typed in
${caseLines(grammar)}
esac
compadd -- \${=choices} || _files
`;
}

/** The script that fish loads when `kit-connector` is typed. */
export function fishCompletion(program: Command): string {
  const grammar = grammarOf(program);
  const at = (words: string): string => `"__kit_connector_at '${words}'"`;
  const lines = [
    ...Array.from(grammar.branches, ([words, next]) => [...next].map((word) => ({ words, word })))
      .flat()
      .map(({ words, word }) => `complete -c kit-connector -f -n ${at(words)} -a '${word}'`),
    ...[{ words: '', options: grammar.general }, ...grammar.commands].flatMap(({ words, options }) =>
      options.map((option) => optionLine(at(words), option)),
    ),
  ];
  return `# fish completion for kit-connector
function __kit_connector_at
  set -l typed ''
  set -l is_value ''
  for word in (commandline -opc)[2..-1]
    if test -n "$is_value"
      set is_value ''
      continue
    end
    if string match -q -- '-*' $word
      contains -- $word ${grammar.valued.join(' ')}; and set is_value 1
      continue
    end
    set -l next (string trim -- "$typed $word")
    string match -q -- "*|$next|*" '${allWords(grammar)}'; and set typed $next
  end
  test "$typed" = "$argv[1]"
end
${lines.join('\n')}
`;
}

function optionLine(condition: string, { long, short, description, required }: Option): string {
  const flags = [long && `-l ${long.slice(2)}`, short && `-s ${short.slice(1)}`].filter(Boolean).join(' ');
  const words = description.replaceAll(/['\\]/g, '');
  return `complete -c kit-connector -n ${condition} ${flags}${required ? ' -r' : ''} -d '${words}'`;
}
