/** What dpkg runs of the package, with the programs of the system replaced by ones that only record their call. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { withDirectory } from '../../support/temporary.ts';

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
  readonly files: readonly string[];
  readonly config?: string;
  /** Units that `systemctl is-active` or `is-enabled` knows. */
  readonly enabled?: readonly string[];
}

/** Runs a script on a machine with these files; answers what it printed, what it called, and which of the files are left. */
async function onMachine(
  script: string,
  args: readonly string[],
  { files, config = '', enabled = [] }: Machine,
) {
  return withDirectory(async (dir) => {
    const root = join(dir, 'root');
    for (const path of [...files, '/usr/share/kit-connector/config.yaml', '/run/systemd/system/x']) {
      await mkdir(dirname(join(root, path)), { recursive: true });
      await writeFile(join(root, path), path.endsWith('config.yaml') ? config : '');
    }
    const bin = join(dir, 'bin');
    await mkdir(bin);
    const calls = join(dir, 'calls');
    await writeFile(calls, '');
    for (const name of recorded) {
      const known = enabled.map((each) => `*"${each}"*) exit 0;;`).join(' ');
      const answer = `case "$*" in *is-active*|*is-enabled*) case "$*" in ${known} *) exit 3;; esac;; esac`;
      await writeFile(join(bin, name), `#!/bin/sh\necho "${name} $*" >>${calls}\n${answer}\n`);
      await chmod(join(bin, name), 0o755);
    }
    // What is absolute in the script lies below the root of this machine.
    const text = (await readFile(join(scripts, script), 'utf8'))
      .replaceAll(/(?<=[\s="])\/(?=(?:etc|run|usr\/share)\/)/g, `${root}/`)
      .replace('/lib/systemd/systemd-sysctl', 'systemd-sysctl');
    const { stdout, stderr, status } = spawnSync('/bin/sh', ['-s', '--', ...args], {
      input: text,
      encoding: 'utf8',
      env: { PATH: `${bin}:/usr/bin:/bin`, DPKG_ROOT: root },
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    return {
      said: stdout.replaceAll(root, ''),
      calls: (await readFile(calls, 'utf8')).split('\n'),
      left: files.filter((path) => existsSync(join(root, path))),
    };
  });
}

const of_kit = [
  '/etc/kit-connector/config.yaml',
  '/etc/kit-connector/config.yaml.before-setup',
  '/var/lib/kit-connector/buffer.db',
  '/var/lib/kit-connector/buffer.db-wal',
  '/var/lib/kit-connector/kit-id',
  '/var/lib/kit-connector/kit-id.machine',
  '/var/lib/kit-connector/drivers/modem/usage.json',
  '/var/cache/kit-connector/x',
  '/run/kit-connector/control.sock',
];
const of_server = [
  '/etc/kit-connector/service.yaml',
  '/etc/kit-connector/secrets/postgres',
  '/etc/credstore/kit-connector.mqtt-password',
  '/var/lib/kit-connector/service.db',
  '/var/lib/kit-connector/service.db-wal',
];
const database = '/var/lib/kit-connector/service.db';
const many = 'kit-connector-service.service';

describe('a purge', () => {
  test('removes all of a gateway, with the database of its own service', async () => {
    const files = [
      ...of_kit,
      '/etc/kit-connector/secrets/gate',
      '/etc/credstore/kit-connector.mqtt-password',
      database,
    ];
    const { left, said, calls } = await onMachine('postrm', ['purge'], { files, config: 'service: {}\n' });
    expect([left, said]).toEqual([[], '']);
    expect(calls).toContain('userdel kit-connector');
  });

  test.for([
    ['its configuration', [...of_kit, ...of_server], of_server],
    ['its database alone', [...of_kit, database], [database]],
  ] as const)(
    'keeps the service for many kits, known by %s, and names what it keeps',
    async ([, files, kept]) => {
      const { left, said, calls } = await onMachine('postrm', ['purge'], { files });
      expect(left).toEqual(kept);
      expect(said).toMatch(/^kept for kit-connector-service: .*\/var\/lib\/kit-connector.*\n$/);
      expect(calls).not.toContain('userdel kit-connector');
    },
  );
});

describe('an installation', () => {
  test('starts the daemon of a gateway', async () => {
    const { calls, said } = await onMachine('postinst', ['configure'], { files: [] });
    expect(calls).toContain('deb-systemd-helper enable kit-connector.service');
    expect(calls).toContain('deb-systemd-invoke start kit-connector.service');
    expect(said).toContain('Next: kit-connector setup');
  });

  test('starts no daemon of a gateway beside the configuration of the service for many kits', async () => {
    const files = ['/etc/kit-connector/service.yaml'];
    const { calls, said } = await onMachine('postinst', ['configure'], { files });
    expect(calls.filter((call) => / (start|restart|enable) kit-connector\.service/.test(call))).toEqual([]);
    expect(said).toContain(`Next: systemctl enable --now ${many}`);
  });

  test('of an upgrade restarts both where both run', async () => {
    const files = ['/etc/kit-connector/service.yaml'];
    const { calls } = await onMachine('postinst', ['configure', '0.1.0'], { files, enabled: [many] });
    expect(calls).toContain('deb-systemd-invoke restart kit-connector.service');
    expect(calls).toContain(`deb-systemd-invoke restart ${many}`);
  });

  test('after a removal that failed starts the service for many kits, which the removal stopped', async () => {
    const { calls } = await onMachine('postinst', ['abort-remove'], {
      files: [],
      enabled: [`is-enabled ${many}`],
    });
    expect(calls).toContain(`deb-systemd-invoke restart ${many}`);
  });
});
