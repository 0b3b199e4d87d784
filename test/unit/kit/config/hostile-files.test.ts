/** Files that are no configuration: each is refused in one sentence with its place. */
import { execFileSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readConfig } from '../../../../src/kit/config/config.ts';
import { isStandaloneFile, readStandalone } from '../../../../src/kit/config/standalone.ts';
import { texts } from '../../../../src/kit/config/texts.ts';
import { texts as platform_texts } from '../../../../src/platform/texts.ts';
import { testDirectory } from '../../../support/test-directory.ts';
import { faultsOf, faultsOfText, kit_id } from './lab.ts';

const bytes_max = 262_144;
const id = `kit_id: ${kit_id}\n`;

/** As many as fit. */
const filled = (text: string, bytes = bytes_max - 100): string =>
  text.repeat(Math.floor(bytes / text.length));
const numbered = (count: number, line: (at: number) => string): string =>
  Array.from({ length: count }, (_, at) => line(at)).join('\n');

describe('a configuration', () => {
  it.each([
    [
      'a tree of aliases',
      `a0: &a0 [x,x,x,x]\n${numbered(20, (at) => `a${at + 1}: &a${at + 1} [*a${at},*a${at},*a${at},*a${at}]`)}`,
      `config.yaml: ${texts.aliases('excessive alias count indicates a resource exhaustion attack')}`,
    ],
    [
      'a key of 250 kB',
      `"${filled('k')}": 1`,
      `config.yaml:1:1: ${texts.not_yaml('the : indicator must be at most 1024 chars after the start of an implicit block mapping key')}`,
    ],
    ['C1', `${id}kit_name: a\u009Bb`, `config.yaml:2:12: ${texts.control_character(0x9b)}`],
  ])('that consists of %s is refused at its place', { timeout: 60_000 }, async (_, text, fault) => {
    expect(await faultsOfText(text)).toEqual([fault]);
  });

  it.each([
    ['keys that are unknown', numbered(5_000, (at) => `key_${at}: 1`)],
    ['keys that are given twice', filled('k: 1\n', 20_000)],
    ['drivers that do not exist', `${id}drivers:\n${numbered(4_000, (at) => `- driver: d${at}`)}`],
  ])('of %s is refused with the first 50 faults', { timeout: 60_000 }, async (_, text) => {
    const faults = await faultsOfText(text);
    expect(faults).toHaveLength(51);
    expect(faults.at(-1)).toMatch(/^config\.yaml: [\d]+ further faults; correct those above first$/u);
  });

  it('that refers to itself is refused', async () => {
    expect(await faultsOfText(`${id}commands: &a { disabled: [*a] }\n`)).toEqual([
      'config.yaml:2:27 commands.disabled[0].asset: is missing; add it (id or key of the asset, or *)',
      'config.yaml:2:27 commands.disabled[0].command: is missing; add it (name of the command, or *)',
      'config.yaml:2:27 commands.disabled[0].disabled: unknown key; remove it (known here: asset, command)',
    ]);
    expect(await faultsOfText(`${id}drivers: [&a { driver: probe, options: *a }]\n`)).not.toEqual([]);
  });

  it('with the key __proto__ is refused', async () => {
    expect(await faultsOfText(`${id}__proto__: { state_dir: /tmp }\n`)).toEqual([
      expect.stringMatching(/^config\.yaml:2:1 __proto__: unknown key; remove it/u),
    ]);
  });

  it('may begin with a byte order mark, end its lines as Windows does and be large', async () => {
    const wans = Array.from({ length: 7 }, (_, at) => `{ name: eth${at}, type: cellular }`).join(', ');
    const drivers = numbered(
      60,
      (at) =>
        `- { driver: probe, name: probe-${at}, options: { interval_s: 5, port: 8080, wans: [${wans}] } }`,
    );
    expect(await faultsOfText(`\uFEFF${id}drivers:\n${drivers}\n`.replaceAll('\n', '\r\n'))).toEqual([]);
  });
});

describe('a file that was named by mistake', () => {
  const utf16 = (text: string): Buffer => Buffer.from(text, 'utf16le');
  it.each([
    ['UTF-16 with a mark', utf16(`\uFEFF${id}`), `1:1: ${texts.utf16}`],
    ['UTF-16', utf16(id), `1:1: ${texts.utf16}`],
    ['a program', Buffer.from('\x7FELF\x02\x01\x01'), `1:1: ${texts.control_character(0x7f)}`],
    [
      'Latin-1',
      Buffer.concat([Buffer.from(`${id}kit_name: Z`), Buffer.from([0xfc])]),
      `2:12: ${texts.not_utf8}`,
    ],
    ['a file of 300 kB', Buffer.alloc(300_000, 'a'), ` ${platform_texts.larger_than(bytes_max)}`],
  ])('is refused, be it %s', async (_, bytes, fault) => {
    const dir = await testDirectory();
    const file = join(dir, 'config.yaml');
    await writeFile(file, bytes);
    const sentence = `config.yaml:${fault}`;
    expect(await faultsOf(dir, readConfig(file, { drivers: [], credentials_dir: undefined }))).toEqual([
      sentence,
    ]);
    expect(await faultsOf(dir, isStandaloneFile(file))).toEqual([sentence]);
    expect(await faultsOf(dir, readStandalone(file, undefined))).toEqual([sentence]);
  });

  it('is neither awaited nor read without end', async () => {
    const open = async (file: string, dir: string): Promise<readonly string[]> =>
      faultsOf(dir, readConfig(file, { drivers: [], credentials_dir: undefined }));
    const dir = await testDirectory();
    await mkdir(join(dir, 'directory'));
    execFileSync('mkfifo', [join(dir, 'pipe')]);
    expect(await open('/dev/zero', dir)).toEqual([`/dev/zero: ${platform_texts.no_file}`]);
    expect(await open(join(dir, 'pipe'), dir)).toEqual([`pipe: ${platform_texts.no_file}`]);
    expect(await open(join(dir, 'directory'), dir)).toEqual([`directory: ${platform_texts.no_file}`]);
  });
});
