/** What dpkg runs of the package, with the programs of the system replaced by ones that only record their call. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { testDirectory } from '../../support/test-directory.ts';

const scripts = join(import.meta.dirname, '../../../systemd/package/debian');
const recorded = [
  'deb-systemd-helper',
  'deb-systemd-invoke',
  'systemctl',
  'systemd-sysctl',
  'systemd-sysusers',
  'systemd-tmpfiles',
  'getent',
  'userdel',
  'groupdel',
  'kit-connector',
];

interface Machine {
  /** The package whose script it is. */
  readonly name?: string;
  readonly files: readonly string[];
  /** Paths beside `files` that may be there afterwards. */
  readonly looked_at?: readonly string[];
  /** Units that `systemctl is-active` or `is-enabled` knows. */
  readonly enabled?: readonly string[];
}

/** Runs a script on a machine with these files; answers what it printed, what it called, and which of the files are left. */
async function onMachine(
  script: string,
  args: readonly string[],
  { name = 'kit-connector', files, looked_at = [], enabled = [] }: Machine,
) {
  const dir = await testDirectory();
  const root = join(dir, 'root');
  for (const path of [...files, '/usr/share/kit-connector/config.yaml', '/run/systemd/system/x']) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), '');
  }
  const bin = join(dir, 'bin');
  await mkdir(bin);
  const calls = join(dir, 'calls');
  await writeFile(calls, '');
  for (const command of recorded) {
    const known = enabled.map((each) => `*"${each}"*) exit 0;;`).join(' ');
    const answer = `case "$*" in *is-active*|*is-enabled*) case "$*" in ${known} *) exit 3;; esac;; esac`;
    await writeFile(join(bin, command), `#!/bin/sh\necho "${command} $*" >>${calls}\n${answer}\n`);
    await chmod(join(bin, command), 0o755);
  }
  await writeFile(join(bin, 'chown'), '#!/bin/sh\n', { mode: 0o755 });
  // What is absolute in the script lies below the root of this machine.
  const text = (await readFile(join(scripts, script), 'utf8'))
    .replaceAll(/(?<=[\s="])\/(?=(?:etc|run|usr\/share|var|lib\/systemd\/system)\/)/g, `${root}/`)
    .replaceAll('#PACKAGE#', name)
    .replace('/lib/systemd/systemd-sysctl', 'systemd-sysctl');
  const { stdout, stderr, status } = spawnSync('/bin/sh', ['-s', '--', ...args], {
    input: text,
    encoding: 'utf8',
    env: { PATH: `${bin}:/usr/bin:/bin`, DPKG_ROOT: root },
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  const left = [...files, ...looked_at].filter((path) => existsSync(join(root, path)));
  const read = left.map(
    async (path) => [path, (await readFile(join(root, path), 'utf8')).replaceAll(root, '')] as const,
  );
  return {
    texts: Object.fromEntries(await Promise.all(read)),
    said: stdout.replaceAll(root, ''),
    calls: (await readFile(calls, 'utf8')).split('\n'),
    left,
  };
}

const of_kit = [
  '/etc/kit-connector/config.yaml',
  '/etc/kit-connector/config.yaml.before-setup',
  '/etc/kit-connector/secrets/gate',
  '/etc/credstore/kit-connector.mqtt-password',
  '/var/lib/kit-connector/buffer.db',
  '/var/lib/kit-connector/kit-id',
  '/var/lib/kit-connector/drivers/modem/usage.json',
  '/var/lib/kit-connector/service.db',
  '/var/cache/kit-connector/x',
  '/run/kit-connector/control.sock',
];
const of_service = [
  '/etc/kit-connector-service/service.yaml',
  '/etc/kit-connector-service/secrets/postgres',
  '/etc/credstore/kit-connector-service.mqtt-password',
  '/var/lib/kit-connector-service/service.db',
  '/var/lib/kit-connector-service/service.db-wal',
];
const many = 'kit-connector-service.service';

test.for([
  ['kit-connector', of_kit, of_service],
  ['kit-connector-service', of_service, of_kit],
] as const)('a purge of %s removes what it has, and nothing of the other', async ([name, own, other]) => {
  const { left, said, calls } = await onMachine('postrm', ['purge'], { name, files: [...own, ...other] });
  expect([left, said]).toEqual([other, '']);
  expect(calls).toContain(`userdel ${name}`);
});

describe('an installation', () => {
  test('starts the daemon of a gateway', async () => {
    const { calls, said } = await onMachine('kit-connector/postinst', ['configure'], { files: [] });
    expect(calls).toContain('deb-systemd-helper enable kit-connector.service');
    expect(calls).toContain('deb-systemd-invoke start kit-connector.service');
    expect(said).toContain('Next: kit-connector setup');
  });

  test('of the service names its configuration as long as there is none', async () => {
    const script = 'kit-connector-service/postinst';
    const fresh = await onMachine(script, ['configure'], { files: [] });
    expect(fresh.calls).toContain(`deb-systemd-helper enable ${many}`);
    expect(fresh.said).toContain('Next: write /etc/kit-connector-service/service.yaml');
    const [file = ''] = of_service;
    expect((await onMachine(script, ['configure', '0.2.0'], { files: [file] })).said).toBe('');
  });

  test('of the service takes over what the single package had, and leaves the rest to the gateway', async () => {
    const old = ['/etc/kit-connector/service.yaml', '/var/lib/kit-connector/service.db-wal', ...of_kit];
    const { left, said } = await onMachine('kit-connector-service/postinst', ['configure'], {
      files: old,
      looked_at: of_service.map((path) => path.replace('postgres', 'gate')),
    });
    expect(left.filter((path) => !path.includes('kit-connector-service'))).toEqual(
      old.filter((path) => !path.includes('service.')),
    );
    expect(left.filter((path) => path.includes('kit-connector-service'))).toHaveLength(of_service.length);
    expect(said).toContain('taken over from the single package');
  });
});

test('a purge of the gateway keeps a service for many kits that no package of its own has taken over', async () => {
  const of_many = ['/etc/kit-connector/service.yaml', '/var/lib/kit-connector/service.db'];
  const { left, said, calls } = await onMachine('postrm', ['purge'], { files: [...of_kit, ...of_many] });
  expect(left).toEqual(expect.arrayContaining(of_many));
  expect(left).not.toContain('/var/lib/kit-connector/buffer.db');
  expect(said).toContain('apt install kit-connector-service');
  expect(calls).not.toContain('userdel kit-connector');
});

test('an upgrade from the single package keeps the unit of the service where that runs, and names its database', async () => {
  const unit = '/lib/systemd/system/kit-connector-service.service';
  const kept = '/etc/systemd/system/kit-connector-service.service';
  const files = [unit, '/etc/kit-connector/service.yaml', '/etc/systemd/system/other.service'];
  const upgrade = async (version: string, enabled: readonly string[]) =>
    onMachine('kit-connector/preinst', ['upgrade', version], { files, enabled, looked_at: [kept] });
  const { left, texts } = await upgrade('0.1.0', [`is-enabled ${many}`]);
  expect(left).toContain(kept);
  expect(texts['/etc/kit-connector/service.yaml']).toBe('database: /var/lib/kit-connector/service.db\n');
  expect((await upgrade('0.1.0', [])).left).not.toContain(kept);
  expect((await upgrade('0.2.0', [`is-enabled ${many}`])).left).not.toContain(kept);
});
