/** Setup tries the broker before it writes anything: one that is away, one that refuses, one that has the kit already. */
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { texts as doctor_texts } from '../../../src/cli/doctor/texts.ts';
import { texts } from '../../../src/cli/texts.ts';
import type { LocalApi } from '../../../src/kit/local/api.ts';
import { serveLocal } from '../../../src/kit/local/server.ts';
import { startMosquitto } from '../../support/brokers/broker.ts';
import { makeCertificates } from '../../support/certificates.ts';
import { peerMissing } from '../../support/peers.ts';
import { makeDirectory } from '../../support/temporary.ts';
import { fakeDaemon, statusOf } from '../kit/local/fake-daemon.ts';
import { typed, typedTrying } from './setup-typed.ts';
import { freePort } from '../../support/ports.ts';

const kit_id = '3f0c1f6e-52a4-4c0e-9d6b-1f2a7c9e4b10';

test('setup reports a silent broker before it writes anything, and lets the technician stop', async () => {
  const dir = await makeDirectory();
  const flags = ['--kit-id', kit_id, '--kit-name', '', '--username', kit_id];
  const away = [...flags, '--broker', `mqtt://127.0.0.1:${await freePort()}`];
  const typing = (answer: string) =>
    typedTrying(dir, away, async (question) => (question.startsWith('password') ? '' : answer));
  const stopped = await typing('no');
  expect(stopped.code).toBe(1);
  expect(stopped.stdout).toMatch(/fail {2}broker tcp: 127\.0\.0\.1 port \d+: connection refused; /u);
  expect(stopped.stderr).toBe('nothing was written\n');
  expect(await readdir(dir)).toEqual([]);

  // Whoever only presses Enter writes nothing, however often the answers are offered again.
  const entered = await typing('');
  expect([entered.code, entered.stdout.match(/broker tcp/gu)?.length]).toEqual([1, 5]);
  expect(await readdir(dir)).toEqual([]);

  const goes_on = await typing('yes');
  expect(goes_on.code).toBe(0);
  expect(goes_on.stdout).toMatch(/broker tcp: [^]*config\.yaml written\n/u);

  const alone = await typedTrying(dir, [...away, '--no-ask', '--force']);
  expect(alone.code).toBe(0);
  expect(alone.stderr).toContain('writing the configuration anyway');
  expect(alone.stdout).toContain(`next: kit-connector run --config ${alone.file}, then `);
});

describe.skipIf(peerMissing('mosquitto', 'mosquitto_passwd'))('a broker that requires a password', () => {
  test('setup lets the technician correct a mistyped password and offers the other answers again', async () => {
    const broker = await startMosquitto({ passwords: { [kit_id]: 'right' } });
    onTestFinished(async () => broker.stop());
    const dir = await makeDirectory();
    const asked: string[] = [];
    const passwords = ['wrnog', 'right'];
    const { code, file, stdout } = await typedTrying(dir, [], async (question) => {
      asked.push(question.replace(/: $/u, ''));
      if (question.startsWith('password')) return passwords.shift() ?? '';
      if (asked.length > 5) return '';
      return [kit_id, 'Kit 7', broker.url][asked.length - 1] ?? '';
    });
    expect(code).toBe(0);
    expect(asked.slice(5)).toEqual([
      'the broker rejected the login of this kit; write the configuration anyway? [no]',
      'correct the answers? [yes]',
      `kit id [${kit_id}]`,
      'display name of the kit [Kit 7]',
      `broker, such as mqtts://broker.example.com:8883 [${broker.url}]`,
      `user name at the broker [${kit_id}]`,
      'password for the broker (empty: keep the previous one)',
    ]);
    expect(stdout).toMatch(/fail {2}broker login[^]*ok {4}broker login[^]*written/u);
    expect(await readFile(join(dir, 'mqtt-password'), 'utf8')).toBe('right\n');
    expect(await readFile(file, 'utf8')).toContain('kit_name: Kit 7');
  });

  test('is logged in at before anything is written', async () => {
    const broker = await startMosquitto({ passwords: { [kit_id]: 'right' } });
    onTestFinished(async () => broker.stop());
    const dir = await makeDirectory();
    const words = ['--no-ask', '--kit-id', kit_id, '--broker', broker.url, '--password-file'];
    await writeFile(join(dir, 'wrong'), 'wrong\n');
    await writeFile(join(dir, 'right'), 'right\n');
    const refused = await typedTrying(dir, [...words, join(dir, 'wrong')]);
    expect(refused.stdout).toMatch(new RegExp(`fail {2}broker login: the broker rejected ${kit_id}`, 'u'));
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(/the broker rejected the login of this kit, .*not written; .*--no-try/u);
    expect((await readdir(dir)).toSorted()).toEqual(['right', 'wrong']);
    const untried = await typedTrying(dir, [...words, join(dir, 'wrong'), '--no-try']);
    expect([untried.code, untried.stderr]).toEqual([0, '']);
    const taken = await typedTrying(dir, [...words, join(dir, 'right'), '--force']);
    expect(taken.stdout).toContain(`ok    broker login: MQTT 5 as ${kit_id}`);
    expect(taken.stderr).not.toContain('anyway');

    const beside = async (api: LocalApi) => {
      const end = new AbortController();
      const socket = join(dir, 'control.sock');
      const { closed } = await serveLocal(api, { socket, gid: undefined, signal: end.signal });
      const told = await typedTrying(dir, [...words, join(dir, 'wrong'), '--force', '--runtime-dir', dir]);
      end.abort();
      await closed;
      return told.stdout;
    };
    // One that has a session there is left alone; the one of a new package has none.
    expect(await beside(fakeDaemon())).toContain('ok    broker login: not checked');
    const { uplink } = statusOf();
    const report = () => statusOf({ uplink: { ...uplink, state: 'stopped', broker: 'none' } });
    expect(await beside(fakeDaemon({ report }))).toContain('fail  broker login: the broker rejected');
  });
});

describe.skipIf(peerMissing('mosquitto', 'openssl'))(
  'a broker with an authority of its own that requires a certificate',
  () => {
    test(
      'lets setup ask for both files, once it is known that they are needed',
      { tags: 'long' },
      async () => {
        const dir = await makeDirectory();
        const { ca, server, client } = await makeCertificates(dir, kit_id);
        // An old mbedTLS or TLS 1.2 names the missing certificate by other alerts than TLS 1.3 does.
        for (const conf of [[], ['tls_version tlsv1.2']]) {
          const broker = await startMosquitto({ tls: { ca, pair: server, client_ca: true }, conf });
          try {
            const asked: string[] = [];
            const files: Readonly<Record<string, string>> = { CA: ca, client: client.cert, its: client.key };
            const { code, file, stdout } = await typedTrying(dir, ['--force'], async (question) => {
              asked.push(question);
              const of_file = files[question.split(' ')[0] ?? ''];
              if (question.startsWith('broker,')) return broker.url;
              if (question.startsWith('kit id')) return kit_id;
              return of_file ?? '';
            });
            expect(code).toBe(0);
            expect(asked.slice(5)).toEqual([
              `${texts.ask_ca}: `,
              `${texts.ask_certificate('the broker')}: `,
              `${texts.ask_key}: `,
            ]);
            expect(stdout).toContain(`ok    broker login: MQTT 5 as ${kit_id}`);
            expect(await readFile(file, 'utf8')).toContain(
              `ca_file: ${ca}\n  cert_file: ${client.cert}\n  key_file: ${client.key}\n`,
            );
            await rm(file);
          } finally {
            await broker.stop();
          }
        }
      },
    );

    test('has the flags named without questions, and the kit whose authority or certificate is missing is not written', async () => {
      const dir = await makeDirectory();
      const { ca, server, clientOf } = await makeCertificates(dir, kit_id);
      await mkdir(join(dir, 'other'));
      const other = await makeCertificates(join(dir, 'other'), kit_id);
      const acl = 'pattern write k1/%u/up/#\npattern read k1/%u/down/#\n';
      const broker = await startMosquitto({ tls: { ca, pair: server, client_ca: true }, acl });
      onTestFinished(async () => broker.stop());
      const words = ['--no-ask', '--kit-id', kit_id, '--broker', broker.url];
      const blind = await typedTrying(dir, words);
      expect([blind.code, blind.stderr]).toEqual([1, expect.stringContaining(`${texts.needs_ca}\n`)]);
      const bare = await typedTrying(dir, [...words, '--ca', ca]);
      expect([bare.code, bare.stderr]).toEqual([1, expect.stringContaining(`${texts.needs_certificate}\n`)]);
      const { cert, key } = other.client;
      const foreign = await typedTrying(dir, [...words, '--ca', ca, '--cert', cert, '--key', key]);
      expect([foreign.code, foreign.stderr]).toEqual([
        1,
        expect.stringContaining(`${texts.needs_certificate}\n`),
      ]);
      // Another name than the id of the kit: the rules of the broker go by it.
      const wrong = await clientOf('another');
      const named = await typedTrying(dir, [...words, '--ca', ca, '--cert', wrong.cert, '--key', wrong.key]);
      expect(named.stdout + named.stderr).toContain(doctor_texts.other_certificate('another', kit_id));
    });
  },
);

test('each answer can be corrected: < goes back to the question before', async () => {
  const dir = await makeDirectory();
  const asked: string[] = [];
  const answers = [kit_id, 'Kti 7', '<', 'Kit 7', 'none'];
  const { code, file } = await typed(dir, [], async (question) => {
    asked.push(question.split(' [')[0] ?? '');
    return answers.shift() ?? '';
  });
  expect(code).toBe(0);
  expect(asked.slice(0, 4)).toEqual([
    'kit id',
    'display name of the kit: ',
    'broker, such as mqtts://broker.example.com:8883',
    'display name of the kit: ',
  ]);
  expect(await readFile(file, 'utf8')).toContain('kit_name: Kit 7\n');
});

describe.skipIf(peerMissing('mosquitto', 'openssl'))('a broker that requires a certificate', () => {
  test('is shown the one of the kit, which the configuration names then', { tags: 'long' }, async () => {
    const dir = await makeDirectory();
    const { ca, server, client } = await makeCertificates(dir, kit_id);
    const acl = 'pattern write k1/%u/up/#\npattern read k1/%u/down/#\n';
    const broker = await startMosquitto({ tls: { ca, pair: server, client_ca: true }, acl });
    onTestFinished(async () => broker.stop());
    const words = ['--no-ask', '--kit-id', kit_id, '--broker', broker.url, '--ca', ca];
    const without = await typedTrying(dir, words);
    expect(without.stderr).toContain(texts.broker_rejected_login);
    const { file, stdout, stderr } = await typedTrying(dir, [
      ...words,
      '--cert',
      client.cert,
      '--key',
      client.key,
      '--force',
    ]);
    expect(stderr).not.toContain(texts.broker_rejected_login);
    expect(stdout).toContain(`broker login: MQTT 5 as ${kit_id}`);
    const text = await readFile(file, 'utf8');
    expect(text).toContain(`cert_file: ${client.cert}\n  key_file: ${client.key}\n`);
  });
});
