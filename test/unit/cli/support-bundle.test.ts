/** The support bundle holds what a developer asks for, and none of the kit's secrets, wherever they were repeated. */
import { chmod, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { scrubber, secretsIn, withoutSecretKeys, tarOf } from '../../../src/cli/support-bundle.ts';
import { runProgram } from '../../../src/cli/program.ts';
import { texts } from '../../../src/cli/texts.ts';
import { serveLocal } from '../../../src/kit/local/server.ts';
import type { LocalApi } from '../../../src/kit/local/api.ts';
import { peerMissing } from '../../support/peers.ts';
import { makeDirectory, run, withDirectory } from '../../support/temporary.ts';
import { fakeDaemon, statusOf } from '../kit/local/fake-daemon.ts';
import { recordedShell } from './shell-of-test.ts';
import { freePort } from '../../support/ports.ts';

const secrets = {
  broker: 'broker "quoted" p@ss/word',
  camera: 'camera-passw0rd',
  media: 'media geheim',
  url: 'in-an-address',
  service_key: 'kc_of_the_service',
} as const;
const every_secret = [
  ...Object.values(secrets),
  JSON.stringify(secrets.broker).slice(1, -1),
  encodeURIComponent(secrets.broker),
  Buffer.from(secrets.camera).toString('base64'),
];

interface Scene {
  readonly dir: string;
  readonly pack: (
    api: LocalApi | undefined,
    ...words: readonly string[]
  ) => Promise<ReadonlyMap<string, string>>;
}

/** A kit whose configuration names secrets of every kind; `pack` answers the files of its bundle. */
async function withScene(play: (scene: Scene) => Promise<void>): Promise<void> {
  const dir = await makeDirectory();
  const secret = async (name: string, text: string): Promise<string> => {
    await writeFile(join(dir, name), `${text}\n`, { mode: 0o600 });
    return join(dir, name);
  };
  const port = await freePort();
  await mkdir(join(dir, 'state'));
  await secret('state/service-key', secrets.service_key);
  const config = {
    kit_id: '3f0c1f6e-52a4-4c0e-9d6b-1f2a7c9e4b10',
    state_dir: join(dir, 'state'),
    runtime_dir: dir,
    broker: { url: `mqtt://127.0.0.1:${port}`, password_file: await secret('broker', secrets.broker) },
    media: {
      server: 'mediamtx',
      viewer_url: `http://viewer:${secrets.url}@127.0.0.1:8889`,
      username: 'u',
      password_file: await secret('media', secrets.media),
    },
    drivers: [
      {
        driver: 'onvif',
        options: {
          cameras: [
            {
              name: 'Gate',
              host: '127.0.0.1',
              port,
              username: 'admin',
              password_file: await secret('camera', secrets.camera),
            },
          ],
        },
      },
    ],
  };
  const file = join(dir, 'config.yaml');
  await writeFile(file, `# the password is ${secrets.broker}\n${JSON.stringify(config)}`, { mode: 0o600 });
  const pack: Scene['pack'] = async (api, ...words) => {
    const ends = new AbortController();
    const socket = join(dir, 'control.sock');
    const served = api && (await serveLocal(api, { socket, gid: undefined, signal: ends.signal }));
    const shell = recordedShell();
    const output = join(dir, 'bundle.tar.gz');
    const code = await runProgram(['support-bundle', '--config', file, '--output', output, ...words], shell);
    ends.abort();
    await served?.closed;
    expect({ code, stderr: shell.stderr() }).toEqual({ code: 0, stderr: '' });
    expect((await stat(output)).mode & 0o777).toBe(0o600);
    const out = join(dir, 'out');
    await run('mkdir', '-p', out);
    await run('tar', '-xzf', output, '-C', out, '--strip-components=1');
    const names = await readdir(out);
    const texts = names.map(async (name) => [name, await readFile(join(out, name), 'utf8')] as const);
    return new Map(await Promise.all(texts));
  };
  await play({ dir, pack });
}

/** A daemon that repeats every secret wherever it can. */
function leakyDaemon(): LocalApi {
  const all = every_secret.join(' | ');
  const { uplink } = statusOf();
  const refused = {
    id: 1,
    lane: 'feed',
    channel: 'telemetry',
    time: new Date(0).toISOString(),
    code: 149,
    reason: all,
    body_bytes: 50,
  };
  return fakeDaemon({
    report: () =>
      statusOf({
        uplink: { ...uplink, state: 'waiting', last_error: all },
        degraded: [all],
        kit: { note: all, api_key: 'key-of-nobody' },
      }),
    recentLog: () => [JSON.stringify({ level: 'warn', msg: all })],
    quarantine: async () => [refused],
    quarantined: async () => ({ ...refused, body: `{"leak":"${all}"}` }),
  });
}

describe.skipIf(peerMissing('tar', 'mkdir'))('a bundle', () => {
  test.each([[], ['--payloads']])(
    'holds no secret of the configuration, whoever repeats it (%j)',
    async (...words) => {
      await withScene(async ({ pack }) => {
        const files = await pack(leakyDaemon(), ...words);
        // What the machine has no program for is left out.
        const of_machine = new Set(['journal.txt', 'unit.txt', 'packages.txt', 'routes.txt', 'rules.txt']);
        const names = [...files.keys()].filter((name) => !of_machine.has(name));
        expect(names.toSorted((a, b) => a.localeCompare(b))).toEqual([
          'buffer.json',
          'config.json',
          'doctor.txt',
          'log.jsonl',
          'quarantine.json',
          'status.json',
          'system.json',
          'versions.json',
        ]);
        for (const [name, text] of files) {
          for (const secret of [...every_secret, 'key-of-nobody']) {
            expect(text.includes(secret), `${name} holds ${secret}`).toBe(false);
          }
        }
        const read = (name: string): unknown => JSON.parse(files.get(name) ?? '');
        expect(read('config.json')).toMatchObject({
          broker: { password_file: expect.any(String) as unknown },
          media: { viewer_url: 'http://***@127.0.0.1:8889' },
          drivers: [{ driver: 'onvif', options: { cameras: [{ username: 'admin' }] } }],
        });
        const [refused] = read('quarantine.json') as [{ body?: string; body_bytes: number }];
        expect(refused.body_bytes).toBe(50);
        expect(refused.body !== undefined).toBe(words.length > 0);
        expect(files.get('doctor.txt')).toMatch(/^fail {2}broker session: not connected/mu);
        expect(files.get('log.jsonl')).toContain('"level":"warn"');
        expect(read('system.json')).toMatchObject({ arch: process.arch });
      });
    },
  );

  test('is made while the daemon is stopped and its configuration is invalid, and reports both', async () => {
    await withScene(async ({ dir, pack }) => {
      await chmod(join(dir, 'camera'), 0o644);
      await writeFile(join(dir, 'config.yaml'), 'kit_id: nonsense\nbroker: { url: x, password: hunter22 }\n');
      const files = await pack(undefined, '--socket', join(dir, 'control.sock'));
      expect(files.get('doctor.txt')).toMatch(/^fail {2}configuration: .*kit_id/mu);
      expect(files.get('status.json')).toContain('is not running');
      expect([...files.values()].join('')).not.toContain('hunter22');
    });
  });

  test('never overwrites another file', async () => {
    await withScene(async ({ dir }) => {
      const taken = join(dir, 'taken');
      await writeFile(taken, 'precious');
      const shell = recordedShell();
      const words = ['support-bundle', '--config', join(dir, 'config.yaml'), '--output', taken];
      expect(await runProgram(words, shell)).toBe(1);
      expect(shell.stderr()).toBe(texts.unwritable(taken, 'file exists', 'choose another file\n'));
      expect(await readFile(taken, 'utf8')).toBe('precious');
    });
  });

  test('is an archive that tar reads, whatever its files contain', { tags: 'long' }, async () => {
    const text = fc.string({ unit: 'binary', maxLength: 2_000 }).filter((each) => each.isWellFormed());
    await withDirectory(async (dir) => {
      const property = fc.asyncProperty(fc.array(text, { minLength: 1, maxLength: 3 }), async (texts) => {
        const archive = join(dir, 'a.tar');
        await writeFile(
          archive,
          tarOf(
            texts.map((each, at) => ({ name: `d/${at}`, text: each })),
            1_800_000_000_000,
          ),
        );
        await run('tar', '-xf', archive, '-C', dir);
        for (const [at, each] of texts.entries())
          expect(await readFile(join(dir, 'd', String(at)), 'utf8')).toBe(each);
      });
      await fc.assert(property, { numRuns: 15 });
    });
    expect(() => tarOf([{ name: 'x'.repeat(101), text: '' }], 0)).toThrow(
      'longer than an archive name may be',
    );
  });
});

test('secrets are recognised by their keys at any depth, and the names of their files stay visible', () => {
  const value = {
    a: [{ password: 'x', password_file: '/p', api_key: 1, community: 'public', token: null }],
    name: 'rtsp://a:b@c/d',
  };
  expect(withoutSecretKeys(value)).toEqual({
    a: [{ password: '***', password_file: '/p', api_key: '***', community: '***', token: '***' }],
    name: 'rtsp://***@c/d',
  });
});

test('every form of a secret is removed from every text, and short secrets do not change ordinary words', () => {
  const secret = fc.string({
    unit: fc.constantFrom(...'ABCXYZ0189"\\/@%:& '.split('')),
    minLength: 4,
    maxLength: 30,
  });
  const around = fc.string({ unit: fc.constantFrom(...'abcxyz.'.split('')), maxLength: 30 });
  const property = fc.property(secret, around, (hidden, words) => {
    const forms = [
      hidden,
      JSON.stringify(hidden),
      encodeURIComponent(hidden),
      Buffer.from(hidden).toString('base64'),
    ];
    const scrubbed = scrubber([hidden])(forms.join(words));
    for (const form of forms) expect(scrubbed).not.toContain(form);
  });
  fc.assert(property);
  expect(scrubber(['ok'])('all is ok')).toBe('all is ok');
  // Not in the configuration: a login that a device reports in an address.
  expect(scrubber([])('see rtsp://me:two@host/live')).not.toMatch(/me|two/u);
  expect(secretsIn({ a: [{ psk: 'one', key_file: '/k' }], b: 'rtsp://me:two@host/' })).toEqual([
    'one',
    'two',
  ]);
});
