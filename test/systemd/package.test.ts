/**
 * The life of the package on a gateway: installed, killed, hung, changed, reloaded, upgraded, downgraded, purged. One
 * container lives through all of it, so each test begins where the one before it ended.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { drivers } from '../../drivers/index.ts';
import { texts } from '../../src/kit/app/texts.ts';
import { readConfig } from '../../src/kit/config/config.ts';
import { targetNamed } from '../../systemd/package/target.ts';
import { type Container, containerMissing, startContainer } from '../support/systemd/container.ts';
import { buildGateway } from '../support/systemd/packages.ts';
import { eventually } from '../support/eventually.ts';
import { peerMissing } from '../support/peers.ts';
import { run, withDirectory } from '../support/temporary.ts';

const shared = join(import.meta.dirname, '../../dist/test');
const config = '/etc/kit-connector/config.yaml';
const unit = 'kit-connector.service';
const units = 'kit-connector*';
const kit_connector = '/usr/bin/kit-connector';
const before = '0.2.1';
const after = '0.2.2';

const status = z.looseObject({
  kit_id: z.string(),
  version: z.string(),
  degraded: z.array(z.string()),
  uplink: z.looseObject({ broker: z.string() }),
  outbox: z.looseObject({ accepted: z.number(), buffered: z.number(), balanced: z.boolean() }),
  drivers: z.array(z.looseObject({ name: z.string(), state: z.string(), reason: z.string().nullish() })),
});
const journalLine = z.looseObject({ MESSAGE: z.string(), PRIORITY: z.string() });

/** A bit of the sets in /proc/PID/status. */
const cap_sys_time = 25n;

describe.skipIf(containerMissing() || peerMissing('x86_64-linux-gnu-strip'))('the package', () => {
  let inside: Container;
  let architecture: string;

  beforeAll(async () => {
    architecture = (await run('dpkg', '--print-architecture')).trim();
    for (const version of [before, after]) {
      await buildGateway({ target: targetNamed(architecture), version, out: shared, compression: 'none' });
    }
    inside = await startContainer(shared);
  });
  afterAll(async () => inside?.stop());

  const install = async (version: string): Promise<string> => {
    const files = ['kit-connector-runtime', 'kit-connector'].map(
      (name) => `/packages/${name}_${version}_${architecture}.deb`,
    );
    return inside.run('env', 'DEBIAN_FRONTEND=noninteractive', 'dpkg', '--install', ...files);
  };
  const property = async (name: string): Promise<string> =>
    inside.run('systemctl', 'show', unit, `--property=${name}`, '--value');
  const mainPid = async (): Promise<string> => property('MainPID');
  const isActive = async (): Promise<boolean> => (await property('ActiveState')) === 'active';
  const report = async () => status.parse(JSON.parse(await inside.run(kit_connector, 'status', '--json')));
  const kitId = async (): Promise<string> => (await report()).kit_id;
  const journal = async (...match: readonly string[]) => {
    const { output } = await inside.attempt('journalctl', '--output=json', '--no-pager', ...match);
    return output
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => journalLine.parse(JSON.parse(line)));
  };
  const sentences = async (...match: readonly string[]): Promise<string> =>
    (await journal(...match)).map(({ MESSAGE }) => MESSAGE).join('\n');
  /** Does what ends the process and waits for the next one. */
  const untilRestarted = async (act: () => Promise<unknown>): Promise<void> => {
    const [pid, restarts] = [await mainPid(), await property('NRestarts')];
    expect(Number(pid)).toBeGreaterThan(1);
    await act();
    await eventually(
      'another process serves',
      async () =>
        (await property('NRestarts')) !== restarts && (await isActive()) && (await mainPid()) !== pid,
      30_000,
    );
  };

  test('is installed by one command and runs, enabled, as a separate user without any capability', async () => {
    await install(before);
    expect(await inside.run('systemctl', 'is-active', unit)).toBe('active');
    expect(await inside.run('systemctl', 'is-enabled', unit)).toBe('enabled');
    const process = await inside.sh(`cat /proc/${await mainPid()}/status`);
    expect(process).toMatch(/^CapEff:\s0+$/m);
    expect(process).toMatch(/^CapBnd:\s0+$/m);
    expect(await inside.sh(`stat --format=%U /proc/${await mainPid()}`)).toBe('kit-connector');
  });

  test('is tried without the right to set the clock, which is that of the machine outside', async () => {
    const bounds = (await inside.sh('grep ^CapBnd /proc/self/status')).split('\t')[1] ?? '';
    expect((BigInt(`0x${bounds}`) >> cap_sys_time) & 1n).toBe(0n);
  });

  test('is called by its own name in lists of processes', async () => {
    expect(await inside.sh(`cat /proc/${await mainPid()}/comm`)).toBe('kit-connector');
  });

  test('says in the journal, in its status and to systemctl what to configure next', async () => {
    const said = await journal(`_SYSTEMD_UNIT=${unit}`, '--priority=warning');
    const line = said.find(({ MESSAGE }) => MESSAGE.includes('no broker is configured'));
    expect(line?.MESSAGE).toContain(`broker.url in ${config}`);
    expect((await report()).degraded.join('\n')).toContain('no broker is configured');
    expect((await report()).uplink.broker).toBe('none');
    expect(await property('StatusText')).toContain('no broker is configured');
  });

  test('starts no broker and opens no port itself', async () => {
    expect(await inside.run('ss', '--no-header', '--listening', '--tcp', '--udp', '--numeric')).toBe('');
  });

  test('gives the kit a unique id and lets no one else read the configuration', async () => {
    expect(z.uuid().safeParse(await kitId()).success).toBe(true);
    expect(await inside.sh(`grep -c '^kit_id:' ${config} || true`)).toBe('0');
    expect(await inside.run('stat', '--format=%a %U', '/var/lib/kit-connector/kit-id')).toBe(
      '640 kit-connector',
    );
    expect(await inside.run('stat', '--format=%a %U %G', config)).toBe('640 root kit-connector');
    expect(await inside.run('stat', '--format=%a', '/var/lib/kit-connector')).toBe('750');
    const { output } = await inside.attempt(kit_connector, 'check');
    expect(output).toContain(': ok, 2 drivers');
  });

  test('lets a technician of its group check the configuration and see the status', async () => {
    await inside.run('useradd', '--groups', 'kit-connector', 'technician');
    const as = ['setpriv', '--reuid=technician', '--regid=technician', '--init-groups'];
    const checked = await inside.attempt(...as, kit_connector, 'check');
    expect([checked.code, checked.output]).toEqual([0, expect.stringContaining(': ok, 2 drivers')]);
    expect((await inside.attempt(...as, kit_connector, 'status')).code).toBe(0);
    expect((await inside.attempt(...as, kit_connector, 'doctor')).output).toContain('journal: ');
  });

  test('runs its echo requests without a capability', async () => {
    const script = `const { globSync } = require('node:fs');
      const { load } = require(globSync('/usr/lib/kit-connector/program-*/node_modules/koffi')[0]);
      const socket = load(null).func('int socket(int, int, int)');
      process.exit(socket(2, 2, 1) >= 0 ? 0 : 1);`;
    const nobody_special = [
      '--reuid=kit-connector',
      '--regid=kit-connector',
      '--clear-groups',
      '--bounding-set=-all',
    ];
    const node = '/usr/lib/kit-connector/bin/node';
    expect(await inside.attempt('setpriv', ...nobody_special, node, '--eval', script)).toEqual({
      code: 0,
      output: '',
    });
  });

  test('is exposed by 2.0 of 10 at most while it runs', async () => {
    const { code, output } = await inside.attempt(
      'systemd-analyze',
      'security',
      '--threshold=20',
      '--no-pager',
      unit,
    );
    // Its exit code is 0 up to the threshold; the table is there to be read when it is not.
    expect(code === 0 ? '' : output).toBe('');
  });

  // SIGTRAP: how a fatal error of V8 ends a process.
  test.for([
    ['-KILL', '9/KILL'],
    ['-TRAP', '5/TRAP'],
  ] as const)(
    'is served again after kill %s, its buffer whole and the signal in the journal',
    async ([signal, named]) => {
      const { outbox } = await report();
      await untilRestarted(async () => inside.run('kill', signal, await mainPid()));
      const now = (await report()).outbox;
      expect(outbox.buffered).toBeGreaterThan(0);
      expect(now.buffered).toBeGreaterThanOrEqual(outbox.buffered);
      expect(now.balanced).toBe(true);
      expect(await sentences(`UNIT=${unit}`)).toContain(`status=${named}`);
      const code = named.split('/')[0] ?? '';
      expect((await inside.attempt(kit_connector, 'doctor')).output).toMatch(
        new RegExp(
          `^warn {2}restarts: systemd restarted it \\d+ times? .*: (?:killed|dumped) ${code};`,
          'mu',
        ),
      );
      await inside.run(kit_connector, 'support-bundle', '--output', `/root/${code}.tar.gz`);
      expect(await inside.run('tar', '-tzf', `/root/${code}.tar.gz`)).toMatch(
        /journal\.txt[^]*unit\.txt|unit\.txt[^]*journal\.txt/u,
      );
    },
  );

  test('is ended by the watchdog and served again when it hangs', async () => {
    await inside.sh(`mkdir -p /run/systemd/system/${unit}.d
      printf '[Service]\\nWatchdogSec=3\\n' >/run/systemd/system/${unit}.d/quick.conf
      systemctl daemon-reload && systemctl restart ${unit}`);
    await untilRestarted(async () => inside.run('kill', '-STOP', await mainPid()));
    expect(await sentences(`UNIT=${unit}`)).toContain('Watchdog timeout');
    await inside.sh(
      `rm -r /run/systemd/system/${unit}.d && systemctl daemon-reload && systemctl restart ${unit}`,
    );
  });

  test('a reload brings a driver without a restart, and its lines bear the fields of the journal', async () => {
    const pid = await mainPid();
    await inside.sh(`cat >>${config} <<'END'
  - driver: mavlink
    options:
      links:
        - { kind: serial, path: /dev/ttyACM0, baud: [57600] }
        - { kind: udp_listen, host: 127.0.0.1, port: 14550 }
END
systemctl reload ${unit}`);
    await eventually('the driver runs', async () =>
      (await report()).drivers.some(({ name }) => name === 'mavlink'),
    );
    expect(await mainPid()).toBe(pid);
    await eventually('it has said why', async () => (await journal('DRIVER=mavlink')).length > 0);
    // The native part of serialport was found: what is missing is the device.
    expect(await sentences('DRIVER=mavlink')).toMatch(/ttyACM0.*(no such|not there|cannot be opened)/i);
    expect((await journal(`KIT=${await kitId()}`)).length).toBeGreaterThan(0);
  });

  test('a reload with a configuration that is wrong fails, reports why, and the service continues as it was', async () => {
    const pid = await mainPid();
    await inside.sh(`cp ${config} /root/right.yaml && echo 'brokr: {}' >>${config}`);
    expect((await inside.attempt('systemctl', 'reload', unit)).code).not.toBe(0);
    expect(await sentences(`_SYSTEMD_UNIT=${unit}`)).toContain('did you mean "broker"?');
    expect(await isActive()).toBe(true);
    await eventually('systemctl status names the rejected configuration', async () =>
      (await property('StatusText')).includes(texts.configuration_rejected(1).slice(0, 50)),
    );
    await inside.sh(`cat /root/right.yaml >${config} && systemctl reload ${unit}`);
    await eventually('its line is gone', async () => !(await property('StatusText')).includes('rejected'));
    expect(await mainPid()).toBe(pid);
  });

  test('brings the rules for brokers and the manual of every driver', async () => {
    await inside.run('test', '-s', '/usr/share/kit-connector/broker/mosquitto.acl');
    const page = await inside.sh('zcat /usr/share/man/man5/kit-connector.yaml.5.gz');
    for (const { name } of drivers) expect(page).toMatch(new RegExp(`^\\.SH DRIVER ${name}$`, 'm'));
    const changes = await inside.sh('zcat /usr/share/doc/kit-connector/changelog.gz');
    const named = [...changes.matchAll(/\/usr\/\S+\w/gu)].map(([path]) => path);
    expect(named).toHaveLength(1);
    await inside.run('test', '-s', ...named);
  });

  test('every driver that needs a separate library loads from the package', async () => {
    await inside.sh(`cat >/tmp/all.yaml <<'END'
kit_id: 3f0c1f6e-52a4-4c0e-9d6b-1f2a7c9e4b10
broker: { url: none }
state_dir: /tmp/state
drivers:
${['clients', 'gateway', 'links', 'location', 'modem', 'onvif', 'power', 'starlink', 'nonesuch']
  .map((name) => `  - driver: ${name}`)
  .join('\n')}
END`);
    const { output } = await inside.attempt(kit_connector, 'check', '/tmp/all.yaml');
    expect(output).toContain('there is no driver "nonesuch"');
    expect(output).not.toContain('cannot be loaded');
  });

  test('reads a credential that lies in the store of systemd', async () => {
    await inside.sh(`umask 077; echo s3cret >/etc/credstore/kit-connector.mqtt-password
      sed -i 's|url: none|url: mqtt://192.0.2.1:1883|' ${config}
      systemctl restart ${unit}`);
    // It is said of a password only if there is one.
    expect((await report()).degraded.join('\n')).toContain('the password crosses the network unencrypted');
    expect(await inside.run('stat', '--format=%a', `/run/credentials/${unit}/mqtt-password`)).toBe('400');
    expect(await sentences(`_SYSTEMD_UNIT=${unit}`)).not.toContain('s3cret');
    await eventually(
      'systemctl status names what is wrong with the broker',
      async () =>
        /\bnot connected \((?!connecting to).*(network|route|reach).*\), messages are kept \|/i.test(
          await property('StatusText'),
        ),
      30_000,
    );
  });

  test('is not started again and again with a configuration that is wrong', async () => {
    await inside.sh(`cp ${config} /root/right.yaml && echo 'brokr: {}' >>${config}`);
    // An upgrade restarts it, and names the fault where the technician looks.
    expect(await install(before)).toContain('did you mean "broker"?');
    expect(await property('ActiveState')).toBe('failed');
    expect(await property('ExecMainStatus')).toBe('78');
    expect(await sentences(`_SYSTEMD_UNIT=${unit}`)).toContain('did you mean "broker"?');
    await inside.sh(`cat /root/right.yaml >${config} && systemctl restart ${unit}`);
    expect(await isActive()).toBe(true);
  });

  test('setup keeps the id of the kit when its configuration was removed', async () => {
    await inside.sh(`mv ${config} /root/right.yaml && kit-connector setup --no-ask --scan 0 --broker none`);
    expect(await inside.sh(`grep '^kit_id:' ${config} || true`)).toBe('');
    await inside.sh(`cat /root/right.yaml >${config}`);
  });

  test('check names what the user of the service may not read, as root', async () => {
    await inside.sh(`chgrp root ${config}`);
    const { code, output } = await inside.attempt(kit_connector, 'check');
    expect([code, output]).toEqual([78, expect.stringContaining(`chgrp kit-connector ${config}`)]);
    await inside.sh(`chgrp kit-connector ${config}`);
  });

  test.for([
    ['an upgrade', after],
    ['a downgrade by one', before],
  ] as const)('%s keeps configuration and buffer and restarts the service', async ([, version]) => {
    const [pid, text, { kit_id, outbox }] = [
      await mainPid(),
      await inside.run('cat', config),
      await report(),
    ];
    await install(version);
    expect(await isActive()).toBe(true);
    expect(await mainPid()).not.toBe(pid);
    expect(await inside.run('cat', config)).toBe(text);
    const now = await report();
    expect([now.version, now.kit_id]).toEqual([version, kit_id]);
    expect(now.outbox.buffered).toBeGreaterThanOrEqual(outbox.buffered);
    expect(outbox.buffered).toBeGreaterThan(0);
  });

  test('stays stopped through an upgrade when the technician disabled it', async () => {
    await inside.run('systemctl', 'disable', '--now', unit);
    await install(after);
    expect((await inside.attempt('systemctl', 'is-enabled', unit)).output).toBe('disabled');
  });

  test('a purge leaves nothing behind', async () => {
    const unitFiles = async (): Promise<string> =>
      (await inside.attempt('systemctl', 'list-unit-files', '--no-legend', units)).output;
    expect(await unitFiles()).toMatch(/^kit-connector\.service /);
    // As a data partition; rm cannot remove it: https://github.com/wazuh/wazuh-packages/issues/212
    const state = '/var/lib/kit-connector';
    await inside.run('mount', '--bind', state, state);
    await inside.run('dpkg', '--purge', 'kit-connector', 'kit-connector-runtime');
    await inside.sh(`umount ${state} && rmdir ${state}`);
    const left = await inside.sh(
      `find / -xdev -name '*kit-connector*' -not -path '/proc/*' -not -path '/packages*' -not -path '/sys/*'; find /run /var -name '*kit-connector*'`,
    );
    expect(left).toBe('');
    expect((await inside.attempt('test', '-e', '/etc/credstore')).code).toBe(1);
    expect(
      await inside.sh('grep kit-connector /etc/passwd /etc/group /etc/shadow /etc/gshadow || true'),
    ).toBe('');
    expect(await unitFiles()).toBe('');
    const links = `find /etc/systemd /run/systemd /usr/lib/systemd -lname '*kit-connector*'`;
    expect(await inside.sh(links)).toBe('');
    // Inactive ones are left out: a container beside this one keeps them loaded, by the path of cgroups that both use.
    const loaded = await inside.run('systemctl', 'list-units', '--all', '--plain', '--no-legend', units);
    expect(loaded.split('\n').filter((line) => line !== '' && !/ inactive +dead /.test(line))).toEqual([]);
  });
});

test('the sample of the package is sound, also with its suggestions taken', async () => {
  const text = await readFile(join(import.meta.dirname, '../../systemd/config.yaml'), 'utf8');
  expect(text).not.toMatch(/^kit_id:/m);
  await withDirectory(async (dir) => {
    const file = join(dir, 'config.yaml');
    const secret = join(dir, 'gate');
    await writeFile(secret, 'a password', { mode: 0o600 });
    const taken = text
      .replaceAll(/^( *)# (?=- |kit_(?:id|name):| +\w+:| +- )/gm, '$1')
      .replace('/etc/kit-connector/secrets/gate', secret);
    await writeFile(file, taken);
    const read = await readConfig(file, { drivers, credentials_dir: undefined });
    expect(read.drivers.map(({ name }) => name)).toEqual(['gateway', 'links', 'mavlink', 'onvif']);
    expect([read.kit_id, read.kit_name]).toEqual(['3f0c1f6e-52a4-4c0e-9d6b-1f2a7c9e4b10', 'Kit 7']);
  });
});
