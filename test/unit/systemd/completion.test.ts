/** Completion in three shells: each command and each option at its place, and what follows values and operands. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { buildProgram } from '../../../src/cli/program.ts';
import { completionScript, fishCompletion, zshCompletion } from '../../../systemd/package/completion.ts';
import { leaves } from '../../../systemd/package/manual.ts';
import { peerMissing } from '../../support/peers.ts';
import { run, withDirectory } from '../../support/temporary.ts';
import { testDirectory } from '../../support/test-directory.ts';

const program = buildProgram(
  {
    env: {},
    out: { write: () => true },
    err: { write: () => true },
    signal: AbortSignal.abort(),
    onHangup: () => undefined,
    onCrash: () => undefined,
  },
  () => undefined,
);

type Place = readonly [words: string, next: readonly string[]];

/** Of a command with commands of its own: its words, and those that may follow. */
function branches(command: typeof program, before = ''): readonly Place[] {
  if (command.commands.length === 0) return [];
  const words = `${before}${command.name()}`;
  const below = command.commands.flatMap((each) => branches(each, `${words} `));
  return [[words, command.commands.map((each) => each.name())], ...below];
}

/** Every place of the command line with what can be typed next there. */
const places: readonly Place[] = [
  ['', [...program.commands.map((each) => each.name()), '--help', '--version']],
  ...program.commands.flatMap((each) => branches(each)),
  ...leaves(program).map(({ words, command: { options } }): Place => [
    words,
    [...options.flatMap(({ long }) => long ?? []), '--help'],
  ]),
];

/** What a shell does not offer although it can be typed. `output`: a line `PLACE:` with the words of a place, then one for each offer. */
function missingIn(output: string): readonly string[] {
  const offers = new Map(
    output.split('PLACE:').map((part) => {
      const [words = '', ...next] = part.split('\n');
      return [words, next.map((each) => each.split('\t')[0])];
    }),
  );
  return places.flatMap(([words, next]) =>
    next.filter((each) => !offers.get(words)?.includes(each)).map((each) => `${words} ${each}`),
  );
}

test('what is missing is seen: a command, an option, a place', () => {
  expect(places.length).toBeGreaterThan(25);
  expect(places).toContainEqual(['buffer quarantine', ['list', 'show', 'retry', 'discard']]);
  const missing = missingIn('PLACE:\nrun\n--help\nPLACE:run\n--help\n');
  expect(missing).toEqual(expect.arrayContaining([' check', ' --version', 'run --config', 'status --watch']));
  expect(missing).not.toContain('run --help');
});

describe.skipIf(peerMissing('bash'))('completion in bash', () => {
  const complete = async (...words: readonly string[]): Promise<readonly string[]> =>
    withDirectory(async (dir) => {
      const file = join(dir, 'completion');
      await writeFile(file, completionScript(program));
      const line =
        'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _kit_connector; echo "${COMPREPLY[*]}"';
      return (await run('bash', '-c', line, 'bash', file, 'kit-connector', ...words)).trim().split(' ');
    });

  test('offers every command and every option', async () => {
    const dir = await testDirectory();
    const file = join(dir, 'completion');
    await writeFile(file, completionScript(program));
    const tried = places.map(
      ([words]) =>
        `COMP_WORDS=(kit-connector ${words} ''); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _kit_connector
        echo 'PLACE:${words}'; printf '%s\\n' "\${COMPREPLY[@]}"`,
    );
    expect(missingIn(await run('bash', '-c', `source '${file}'\n${tried.join('\n')}`))).toEqual([]);
  });

  test('offers the commands, then the words below one, then its options', async () => {
    expect(await complete('sta')).toEqual(['status']);
    expect(await complete('buffer', 'q')).toEqual(['quarantine']);
    expect(await complete('buffer', 'quarantine', '')).toEqual(['list', 'show', 'retry', 'discard']);
    expect(await complete('status', '--w')).toEqual(['--watch']);
    expect(await complete('status', '--json', '--w')).toEqual(['--watch']);
  });

  test('continues behind the values of options and behind operands, and leaves values to the names of files', async () => {
    expect(await complete('tail', '--asset', 'Gate', '--f')).toEqual(['--feed']);
    expect(await complete('setup', '--broker', 'mqtts://b', '--ca')).toEqual(['--ca']);
    expect(await complete('task', 'Gate', '--dead')).toEqual(['--deadline']);
    expect(await complete('buffer', 'quarantine', 'discard', '7', '--a')).toEqual(['--all']);
    expect(await complete('status', '-c', 'buffer', '--w')).toEqual(['--watch']);
    expect(await complete('setup', '--password-file', '')).toEqual(['']);
  });
});

describe.skipIf(peerMissing('zsh'))('completion in zsh', () => {
  /** The file is the body of a function; what it would offer is printed instead. */
  const complete = async (...words: readonly string[]): Promise<readonly string[]> =>
    withDirectory(async (dir) => {
      await writeFile(join(dir, '_kit-connector'), zshCompletion(program));
      const line = `fpath=(${dir} $fpath); autoload -U _kit-connector
        compadd() { shift; print -l -- "$@"; }; _files() { print FILES; }
        words=("$@"); CURRENT=$#; _kit-connector`;
      return (await run('zsh', '-f', '-c', line, 'zsh', 'kit-connector', ...words)).trim().split('\n');
    });

  test('offers every command and every option', async () => {
    const dir = await testDirectory();
    await writeFile(join(dir, '_kit-connector'), zshCompletion(program));
    const tried = places.map(
      ([words]) =>
        `print 'PLACE:${words}'; words=(kit-connector ${words} ''); CURRENT=$#words; _kit-connector`,
    );
    const script = `fpath=(${dir} $fpath); autoload -U _kit-connector
      compadd() { shift; print -l -- "$@"; }; _files() { print FILES; }\n${tried.join('\n')}`;
    expect(missingIn(await run('zsh', '-f', '-c', script))).toEqual([]);
  });

  test('offers words and options where the cursor is, and files behind an option with a value', async () => {
    expect(await complete('')).toContain('status');
    expect(await complete('buffer', 'quarantine', '')).toEqual(['list', 'show', 'retry', 'discard']);
    expect(await complete('tail', '--asset', 'Gate', '')).toContain('--feed');
    expect(await complete('setup', '--password-file', '')).toEqual(['FILES']);
    expect(await complete('status', '-c', 'buffer', '')).toContain('--watch');
  });
});

describe.skipIf(peerMissing('fish'))('completion in fish', () => {
  const complete = async (typed: string): Promise<readonly string[]> =>
    withDirectory(async (dir) => {
      const file = join(dir, 'kit-connector.fish');
      await writeFile(file, fishCompletion(program));
      const line = `set -x HOME ${dir}; source ${file}; complete -C '${typed}'`;
      const lines = (await run('fish', '--no-config', '--command', line)).trim().split('\n');
      return lines.map((each) => each.split('\t')[0] ?? '');
    });

  test('offers every command and every option', async () => {
    const dir = await testDirectory();
    const file = join(dir, 'kit-connector.fish');
    await writeFile(file, fishCompletion(program));
    const tried = places.map(([words]) => {
      const line = `kit-connector ${words}`.trimEnd();
      return `echo 'PLACE:${words}'; complete -C '${line} '; complete -C '${line} --'`;
    });
    const script = `set -x HOME ${dir}; source ${file}; ${tried.join('; ')}`;
    expect(missingIn(await run('fish', '--no-config', '--command', script))).toEqual([]);
  });

  test('offers words and options where the cursor is', async () => {
    expect(await complete('kit-connector sta')).toEqual(['status']);
    expect((await complete('kit-connector buffer quarantine ')).toSorted()).toEqual([
      'discard',
      'list',
      'retry',
      'show',
    ]);
    expect(await complete('kit-connector tail --asset Gate --f')).toEqual(['--feed']);
    expect(await complete('kit-connector status -c buffer --w')).toEqual(['--watch']);
  });
});
