/** The doctor as it is typed: what it makes of the daemon's own words, its exit codes, and that nothing stops it. */
import { createServer } from 'node:http';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { degradedReasons } from '../../../../src/kit/app/degraded.ts';
import { kitFindings } from '../../../../src/cli/doctor/kit.ts';
import { keys_only } from '../../../../src/cli/doctor/places.ts';
import { withStoredSecrets } from '../../../../src/cli/doctor/stored-secrets.ts';
import { texts } from '../../../../src/cli/doctor/texts.ts';
import { runProgram } from '../../../../src/cli/program.ts';
import { reasonOf } from '../../../../src/mqtt/codes.ts';
import { plainFault } from '../../../../src/mqtt/faults.ts';
import { serveLocal } from '../../../../src/kit/local/server.ts';
import { well } from '../../../support/kit/troubles.ts';
import { freePort } from '../../../support/ports.ts';
import { makeDirectory } from '../../../support/temporary.ts';
import { fakeDaemon, statusOf, time } from '../../kit/local/fake-daemon.ts';
import { recordedShell } from '../shell-of-test.ts';

const kit_id = '3f0c1f6e-52a4-4c0e-9d6b-1f2a7c9e4b10';
const answer = z.object({
  level: z.enum(['ok', 'warn', 'fail']),
  findings: z.array(
    z.strictObject({
      level: z.enum(['ok', 'warn', 'fail']),
      what: z.string().min(1),
      finding: z.string().min(1),
      remedy: z.string().min(1).nullable(),
    }),
  ),
});

async function typed(dir: string, config: string, ...words: readonly string[]) {
  const file = join(dir, 'config.yaml');
  await writeFile(file, config);
  const shell = recordedShell();
  const code = await runProgram(['doctor', '--config', file, ...words], shell);
  return { code, stdout: shell.stdout(), stderr: shell.stderr() };
}

function configIn(dir: string, more = ''): string {
  return `kit_id: ${kit_id}\nclock: trusted\nstate_dir: ${dir}\nruntime_dir: ${dir}\noutbox: { free_disk_min_mb: 0 }\n${more}`;
}

test('the doctor exits with 0 without findings, with 1 after warnings and with 2 after faults', async () => {
  const dir = await makeDirectory();
  const stopped = await typed(dir, configIn(dir));
  expect(stopped.stdout).toMatch(
    /^warn {2}daemon: kit-connector is not running .*; systemctl start kit-connector; if it stops again, see journalctl /mu,
  );
  expect(stopped.code).toBe(1);

  const ends = new AbortController();
  const socket = join(dir, 'control.sock');
  const { closed } = await serveLocal(fakeDaemon(), { socket, gid: undefined, signal: ends.signal });
  const well = await typed(dir, configIn(dir));
  expect(well.stdout).not.toMatch(/^(?:warn|fail)/mu);
  expect(well.code).toBe(0);
  ends.abort();
  await closed;

  const broken = await typed(dir, configIn(dir, 'drivres: []\n'), '--json');
  const { level, findings } = answer.parse(JSON.parse(broken.stdout));
  expect([broken.code, level]).toEqual([2, 'fail']);
  expect(findings.find(({ what }) => what === 'configuration')).toMatchObject({ level: 'fail' });
  expect(findings.every((each) => (each.level === 'ok') === (each.remedy === null))).toBe(true);
});

test('a link over which a stranger can pass for a vehicle is named with its remedy, also while the daemon is stopped', async () => {
  const dir = await makeDirectory();
  const links = '[{ kind: udp_listen, name: field, port: 14550 }, { kind: serial, path: /dev/null }]';
  const open = `drivers: [{ driver: mavlink, name: drones, options: { links: ${links} } }]\n`;
  const { stdout } = await typed(dir, configIn(dir, open));
  expect(stdout).toMatch(
    /^warn {2}settings of drones: link field takes unsigned frames from any host that reaches UDP port 14550: .*; set signing, or the addresses of each vehicle/mu,
  );
  expect(stdout.match(/unsigned frames/gu)).toHaveLength(1);
});

test('a warning that the configuration accepts is shown and counts no longer; a fault counts, and an unused name is named', async () => {
  const dir = await makeDirectory();
  const link = `[{ kind: udp_listen, name: field, port: ${await freePort()} }]`;
  const open = (accepted: string): string =>
    configIn(
      dir,
      `doctor: { accepted: [${accepted}] }\ndrivers: [{ driver: mavlink, name: drones, options: { links: ${link} } }]\n`,
    );
  expect((await typed(dir, open(''))).code).toBe(1);
  const { code, stdout } = await typed(dir, open('settings of drones, daemon, gone'));
  expect(code).toBe(0);
  expect(stdout).toMatch(
    /^ok {4}settings of drones: accepted in the configuration: link field takes unsigned/mu,
  );
  expect(stdout).toContain(`ok    accepted: ${texts.not_found_now('gone')}\n`);
  const faulty = open('configuration').replace('clock: trusted', 'clock: wrong');
  expect((await typed(dir, faulty)).code).toBe(2);
});

test('a hung daemon is reported and does not delay the other checks', async () => {
  const dir = await makeDirectory();
  const mute = createServer(() => undefined);
  mute.listen(join(dir, 'control.sock'));
  await once(mute, 'listening');
  const { code, stdout } = await typed(dir, configIn(dir, "broker: { url: 'mqtt://127.0.0.1:1' }\n"));
  mute.closeAllConnections();
  mute.close();
  expect(code).toBe(2);
  expect(stdout).toMatch(
    /^fail {2}daemon: the control socket exists, but the daemon does not answer; if the systemd watchdog/mu,
  );
  expect(stdout).not.toContain('timed out');
});

test('facts of the daemon are findings, and those that the configuration has too appear once', async () => {
  const dir = await makeDirectory();
  const broker = "broker: { url: 'mqtt://127.0.0.1:1' }\n";
  const { stdout } = await typed(dir, configIn(dir, 'broker: { url: none }\n'));
  const told = /^warn {2}configuration: (.*)$/mu.exec(stdout)?.[1] ?? '';
  const damaged = 'the buffer file was damaged (torn): 3 messages saved; it is kept as /var/x.damaged';
  const restart = 'metrics changed in the configuration; restart kit-connector to apply';
  const ends = new AbortController();
  const socket = join(dir, 'control.sock');
  const report = () => statusOf({ warnings: [damaged, restart, told.replace('; ', ': ')] });
  const { closed } = await serveLocal(fakeDaemon({ report }), {
    socket,
    gid: undefined,
    signal: ends.signal,
  });
  const beside = await typed(dir, configIn(dir, 'broker: { url: none }\n'));
  expect(beside.stdout).toContain(`warn  kit: ${damaged}\nwarn  kit: ${restart}\n`);
  expect(beside.stdout.match(/no broker is configured/gu)).toHaveLength(1);
  expect((await typed(dir, configIn(dir, broker))).stdout.match(/^warn {2}kit: /gmu)).toHaveLength(3);
  ends.abort();
  await closed;
});

test('a kit without a broker has a finding with the key to set', async () => {
  const dir = await makeDirectory();
  const { code, stdout } = await typed(dir, configIn(dir, 'broker: { url: none }\n'));
  expect(stdout).toMatch(/^warn {2}configuration: no broker is configured.*; set broker\.url/mu);
  expect(stdout).not.toContain('broker tcp');
  expect(code).toBe(1);
});

test('a missing configuration and a daemon that answers nonsense are findings', async () => {
  const dir = await makeDirectory();
  const shell = recordedShell();
  const words = ['doctor', '--config', join(dir, 'none.yaml'), '--socket', join(dir, 'control.sock')];
  expect(await runProgram(words, shell)).toBe(2);
  expect(shell.stdout()).toMatch(
    /^fail {2}configuration: .*none\.yaml: cannot be read \(no such file or directory\); create it/mu,
  );

  const nonsense = createServer((_request, response) => response.end('<html>'));
  nonsense.listen(join(dir, 'control.sock'));
  await once(nonsense, 'listening');
  const { code, stdout } = await typed(dir, configIn(dir, "broker: { url: 'mqtt://127.0.0.1:1' }\n"));
  nonsense.close();
  expect(code).toBe(2);
  expect(stdout).toMatch(/^fail {2}daemon: .*; systemctl restart kit-connector/mu);
  // Somebody is there: a login of the doctor could end the session of the daemon.
  expect(stdout).not.toContain('broker login');
});

const disks = [
  [{ state: 'full' }, texts.disk_full('x'), texts.free_space_until],
  [{ state: 'failing', fault: 'full' }, texts.disk_full('x'), texts.free_space_buffering],
  [{ state: 'failing', fault: 'read_only' }, texts.disk_write_failed('x'), texts.repair_disk],
  [{ state: 'failing', fault: 'busy' }, texts.disk_write_failed('x'), texts.unlock_buffering],
  [{ state: 'failing' }, texts.disk_write_failed('x'), texts.check_disk_buffering],
] as const;

test.each(disks)('a disk that is %j has its remedy', (health, finding, remedy) => {
  const { outbox } = statusOf();
  const report = statusOf({ outbox: { ...outbox, health: { ...health, detail: 'x' } } });
  expect(kitFindings(report, []).find(({ what }) => what === 'buffer')).toMatchObject({ finding, remedy });
});

test.each(disks)('doctor, status and systemctl agree on a disk that is %j', (health, finding, remedy) => {
  const [reason = ''] = degradedReasons({ ...well, health: { ...health, detail: 'x' } });
  expect(reason.startsWith(finding)).toBe(true);
  // One place where messages are until then: none says that the buffer does not grow while another one keeps them in memory.
  expect(
    [remedy, reason, texts.free_space_logs].filter((text) => /grow|memory/u.test(text)).length,
  ).toBeGreaterThan(0);
  expect(/grow/u.test(remedy) && /memory/u.test(reason)).toBe(false);
  expect(texts.free_space_logs).not.toMatch(/dropped|memory/u);
});

test('each fault that the daemon reports has a line with its remedy', () => {
  const { uplink, outbox, drivers, assets } = statusOf();
  const [driver] = drivers;
  const [asset] = assets;
  if (!driver || !asset) throw new Error('the sample has a driver and an asset');
  const stateOf = (state: string) => ({ ...driver, name: state, state, reason: 'no answer\u001B[31m' });
  const report = statusOf({
    uplink: { ...uplink, state: 'waiting', last_error: 'connect ETIMEDOUT', unheard: ['feed'] },
    outbox: { ...outbox, balanced: false, quarantined: 2, health: { state: 'failing', detail: 'EIO' } },
    drivers: ['up', 'starting', 'down', 'rejected', 'hung'].map(stateOf),
    assets: [{ ...asset, status: 'offline', reason: 'no heartbeat', last_seen_at: time }],
  });
  const refused = { id: 1, lane: 'feed', time, code: 0x87, reason: 'not authorized', body_bytes: 2 } as const;
  const findings = kitFindings(report, [
    { ...refused, channel: 'feed/a/gps' },
    { ...refused, channel: 'feed/b/gps' },
  ]);
  expect(
    findings.map(({ level, what, finding }) =>
      `${level} ${what}: ${finding}`.replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/gu, 'TIME'),
    ),
  ).toEqual([
    'ok daemon: kit-connector 0.1.0 has been running for 1h 2m',
    'fail broker session: not connected to mqtts://broker.example.com:8883 since TIME: connect ETIMEDOUT',
    'fail broker rights: the broker rejected 2 messages permanently: feed (not authorized)',
    'warn broker listeners: no subscriber for feed',
    'fail buffer: disk write failed: EIO',
    'fail buffer counters: accepted and released messages do not match',
    'ok driver up (mavlink): up since TIME',
    'warn driver starting (mavlink): no data from its devices yet',
    'fail driver down (mavlink): no device connected since TIME: no answer [31m',
    'fail driver rejected (mavlink): rejected: no answer [31m',
    'fail driver hung (mavlink): does not stop: no answer [31m',
    'warn drone Falcon (mavlink:1): offline: no heartbeat, last seen at TIME',
  ]);
  expect(kitFindings(statusOf({ uplink: { ...uplink, state: 'stopped' } }), [])[1]).toMatchObject({
    level: 'warn',
    finding: texts.no_broker_configured,
  });
});

test.each([
  ['not authorized (0x87)', {}, texts.correct_login_and_restart(keys_only.password)],
  ['not authorized (0x87)', { certificate: 'kit.pem' }, texts.register_certificate('kit.pem')],
  ['client identifier not valid (0x85)', {}, reasonOf(0x85).remedy],
  // The sentence names a remedy of its own, which is not about the login at the broker.
  ['the proxy p answered 407 to it: it requires a login; set its password', {}, texts.messages_buffered],
  [plainFault(Object.assign(new Error(), { code: 'CERT_HAS_EXPIRED' })), {}, texts.messages_buffered],
])('a broker that is not reached (%s) has the remedy of its cause', (last_error, places, remedy) => {
  const { uplink } = statusOf();
  const report = statusOf({ uplink: { ...uplink, state: 'waiting', last_error } });
  expect(kitFindings(report, [], { ...keys_only, ...places })[1]).toMatchObject({ remedy });
});

test('secrets in the credential store of systemd are found, and those of the configuration take precedence', async () => {
  const dir = await makeDirectory();
  await mkdir(join(dir, 'store'));
  await writeFile(join(dir, 'store', 'kit-connector.mqtt-password'), 'stored\n');
  const none = { password: undefined, ca: undefined, cert: undefined, key: undefined };
  const rest = {
    url: 'mqtt://h:1',
    username: 'u',
    protocol: 'auto',
    keepalive_s: 30,
    connect_timeout_ms: 1,
    ack: 'auto',
  } as const;
  expect((await withStoredSecrets({ ...none, ...rest }, join(dir, 'store'))).password).toBe('stored');
  expect((await withStoredSecrets({ ...none, ...rest, password: 'own' }, join(dir, 'store'))).password).toBe(
    'own',
  );
  expect(await withStoredSecrets({ ...none, ...rest }, join(dir, 'nowhere'))).toEqual({ ...none, ...rest });
});

test.each([
  [null, []],
  ['HTTP 502', [{ level: 'warn', finding: texts.uploads_fail(2, 'HTTP 502'), remedy: texts.check_uploads }]],
])('names why files are not uploaded (%s)', (fault, expected) => {
  const kept = { files: 2, bytes: 10, ordered: 0 };
  const files = { accepted: 2, uploaded: 0, dropped: {}, kept, bytes_max: 100, sent_bytes: 0, fault };
  const found = kitFindings(statusOf({ files }), []).filter(({ what }) => what === 'files');
  expect(found).toMatchObject(expected);
});
