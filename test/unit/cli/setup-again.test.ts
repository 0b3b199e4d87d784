/** Setup that is run again: it proposes what is configured, and overwrites no earlier copy. */
import { chmod, readdir, readFile, readlink, rename, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { texts as doctor_texts } from '../../../src/cli/doctor/texts.ts';
import { texts } from '../../../src/cli/texts.ts';
import { startMosquitto } from '../../support/brokers/broker.ts';
import { peerMissing } from '../../support/peers.ts';
import { makeDirectory } from '../../support/temporary.ts';
import { runProgram } from '../../../src/cli/program.ts';
import { typed, typedTrying } from './setup-typed.ts';
import { recordedShell } from './shell-of-test.ts';

const kit_id = '3f0c1f6e-52a4-4c0e-9d6b-1f2a7c9e4b10';
const configured = `kit_id: ${kit_id}
kit_name: Kit 7
state_dir: /var/lib/kit-7
broker:
  url: mqtts://broker.example.com:8883
  username: seven
  password_file: secrets/mine
`;

async function withConfigured(fn: (dir: string) => Promise<void>): Promise<void> {
  const dir = await makeDirectory();
  await writeFile(join(dir, 'config.yaml'), configured.replace('secrets/', ''));
  await writeFile(join(dir, 'mine'), 'geheim\n', { mode: 0o600 });
  await fn(dir);
}

describe('setup that is run again', () => {
  test('proposes what is configured, and keeps it where Enter is pressed', async () => {
    await withConfigured(async (dir) => {
      const asked: string[] = [];
      const { code, file } = await typed(dir, ['--force'], async (question) => {
        asked.push(question.replace(/: $/u, ''));
        return '';
      });
      expect(code).toBe(0);
      expect(asked).toEqual([
        `kit id [${kit_id}]`,
        `${texts.ask_kit_name} [Kit 7]`,
        `${texts.ask_broker} [mqtts://broker.example.com:8883]`,
        `${texts.ask_username_of()} [seven]`,
        texts.ask_password(texts.empty_keeps).replace(/: $/u, ''),
      ]);
      const text = await readFile(file, 'utf8');
      expect(text).toContain(
        `kit_id: ${kit_id}\nkit_name: Kit 7\nstate_dir: /var/lib/kit-7\nbroker:\n  url: mqtts://broker.example.com:8883\n  username: seven\n  password_file: ${join(dir, 'mine')}\n`,
      );
      expect(await readFile(join(dir, 'mine'), 'utf8')).toBe('geheim\n');
    });
  });

  test('does so without questions, and flags change single settings', async () => {
    await withConfigured(async (dir) => {
      const { file } = await typed(dir, ['--force', '--no-ask', '--kit-name', 'Kit 8']);
      const text = await readFile(file, 'utf8');
      expect(text).toContain('kit_name: Kit 8');
      expect(text).toContain('  url: mqtts://broker.example.com:8883\n  username: seven\n  password_file: ');
    });
  });

  // As where /etc is made anew with each image: https://github.com/GothenburgBitFactory/timewarrior/issues/546
  test('keeps a link that leads to the configuration, and changes what it leads to', async () => {
    await withConfigured(async (dir) => {
      const [file, kept] = [join(dir, 'config.yaml'), join(dir, 'kept.yaml')];
      await rename(file, kept);
      await symlink(kept, file);
      await typed(dir, ['--force', '--no-ask', '--kit-name', 'Kit 8']);
      expect(await readlink(file)).toBe(kept);
      expect(await readFile(kept, 'utf8')).toContain('kit_name: Kit 8');
    });
  });

  test('keeps comments, drivers and every other setting', async () => {
    await withConfigured(async (dir) => {
      const others = `# ours\nclock: trusted\ndrivers:\n  - driver: gateway\n    options: { interval_s: 9 } # slow\n`;
      await writeFile(
        join(dir, 'config.yaml'),
        `${configured.replace('secrets/', '')}  keepalive_s: 60\n${others}`,
      );
      const { code, file, stdout } = await typed(dir, ['--force', '--no-ask', '--username', 'eight']);
      expect([code, stdout]).toEqual([0, expect.stringContaining('stays as it was')]);
      const text = await readFile(file, 'utf8');
      for (const part of [others, '  keepalive_s: 60\n', '  username: eight\n']) expect(text).toContain(part);
    });
  });

  test('as login asks for the login alone', async () => {
    await withConfigured(async (dir) => {
      const asked: string[] = [];
      const shell = {
        ...recordedShell(),
        ask: async (question: string) => {
          asked.push(question);
          return question.startsWith('password') ? 'new' : '';
        },
      };
      const file = join(dir, 'config.yaml');
      expect(await runProgram(['login', '--config', file, '--no-try'], shell)).toBe(0);
      expect(asked).toHaveLength(2);
      const text = await readFile(file, 'utf8');
      expect(text).toBe(configured.replace('secrets/mine', join(dir, 'mqtt-password')));
      expect(await readFile(join(dir, 'mqtt-password'), 'utf8')).toBe('new\n');
      await writeFile(file, 'broker: { url: none }\n');
      expect(await runProgram(['login', '--config', file], shell)).toBe(64);
    });
  });

  test('shows nothing of it that moves a cursor', async () => {
    const dir = await makeDirectory();
    await writeFile(join(dir, 'config.yaml'), 'kit_name: "a\\e]52;c;eA==\\ab"\nbroker: { url: none }\n');
    const asked: string[] = [];
    await typed(dir, ['--kit-id', kit_id], async (question) => {
      asked.push(question);
      return 'none';
    });
    expect(asked[0]).toContain('[a\\u{1b}]52;c;eA==\\u{7}b]');
  });

  test('gives another broker no password of the one before', async () => {
    await withConfigured(async (dir) => {
      const asked: string[] = [];
      const { file } = await typed(
        dir,
        ['--force', '--broker', 'mqtts://other.example.com'],
        async (question) => {
          asked.push(question);
          return '';
        },
      );
      expect(asked.at(-1)).toBe(texts.ask_password(texts.empty_none));
      expect(await readFile(file, 'utf8')).not.toContain('password_file');
    });
  });

  test('overwrites no earlier copy of a configuration', async () => {
    await withConfigured(async (dir) => {
      const file = join(dir, 'config.yaml');
      const first = await readFile(file, 'utf8');
      await chmod(file, 0o600);
      const kept: string[] = [];
      for (const name of ['Kit 8', 'Kit 9', 'Kit 10']) {
        const { stdout } = await typed(dir, ['--force', '--no-ask', '--kit-name', name]);
        kept.push(/kept as (\S+);/u.exec(stdout)?.[1] ?? '');
      }
      expect(kept).toEqual(['', '-2', '-3'].map((end) => `${file}.before-setup${end}`));
      expect(await readFile(kept[0] ?? '', 'utf8')).toBe(first);
      expect(await readFile(kept[2] ?? '', 'utf8')).toContain('kit_name: Kit 9');
      expect((await readdir(dir)).toSorted()).toEqual(
        ['config.yaml', ...kept.map((path) => path.slice(dir.length + 1)), 'mine'].toSorted(),
      );
    });
  });
});

describe.skipIf(peerMissing('mosquitto', 'mosquitto_passwd'))('a login that the broker rejects', () => {
  test('has as its remedy the place of the password: typed, of a flag, or configured', async () => {
    const broker = await startMosquitto({ passwords: { [kit_id]: 'right' } });
    onTestFinished(async () => broker.stop());
    const dir = await makeDirectory();
    const words = ['--kit-id', kit_id, '--kit-name', 'a', '--broker', broker.url, '--username', kit_id];
    const wrong = join(dir, 'wrong');
    await writeFile(wrong, 'wrong\n', { mode: 0o600 });
    const remedy = (place: string) => doctor_texts.correct_login(place);
    const flat = (text: string) => text.replaceAll(/\s+/gu, ' ');

    const by_hand = await typedTrying(dir, words, async (question) =>
      question.startsWith('password') ? 'wrong' : 'no',
    );
    expect(flat(by_hand.stdout)).toContain(remedy(texts.typed_password_place));
    const by_flag = await typedTrying(dir, [...words, '--no-ask', '--password-file', wrong]);
    expect(flat(by_flag.stdout)).toContain(remedy(texts.password_file_place));
    await writeFile(
      by_flag.file,
      `kit_id: ${kit_id}\nbroker: { url: '${broker.url}', password_file: wrong }\n`,
    );
    const again = await typedTrying(dir, ['--no-ask', '--force']);
    expect([again.code, flat(again.stdout)]).toEqual([1, expect.stringContaining(remedy(wrong))]);
  });
});
