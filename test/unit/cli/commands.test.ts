/** The subcommands as they are typed, against a daemon on a real control socket. */
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runProgram } from '../../../src/cli/program.ts';
import { texts } from '../../../src/cli/texts.ts';
import type { LocalApi } from '../../../src/kit/local/api.ts';
import { serveLocal } from '../../../src/kit/local/server.ts';
import { localTime } from '../../../src/platform/local-time.ts';
import { makeDirectory, withDirectory } from '../../support/temporary.ts';
import { drone, fakeDaemon, messageOf, statusOf, taskOf, time } from '../kit/local/fake-daemon.ts';
import { recordedShell } from './shell-of-test.ts';

/** Of another day, so with its date. */
const at_ten = localTime(time);

/** Types `words`, and `--socket`, while `api` is served; answers what came of it. */
async function typed(api: LocalApi, words: readonly string[], shell = recordedShell()) {
  return withDirectory(async (dir) => {
    const ends = new AbortController();
    const socket = join(dir, 'control.sock');
    const { closed } = await serveLocal(api, { socket, gid: undefined, signal: ends.signal });
    const code = await runProgram([...words, '--socket', socket], shell);
    ends.abort();
    await closed;
    return { code, stdout: shell.stdout(), stderr: shell.stderr() };
  });
}

test('status prints plain aligned text where there is no terminal', async () => {
  const { code, stdout } = await typed(fakeDaemon(), ['status']);
  expect(code).toBe(0);
  expect(stdout).toBe(`Kit 7 (3f0c1f6e-52a4-4c0e-9d6b-1f2a7c9e4b10): ok  kit-connector 0.1.0, up 1h 2m

uplink   connected since ${at_ten}  mqtts://broker.example.com:8883  MQTT 5, round trip 48 ms, 2 in flight
buffer   accepted 120 = delivered 100 + buffered 15 + dropped 5 (thinned 5)
         file 81.9 kB, oldest message of ${at_ten}
         feed  15 messages  3.0 kB
location unknown  no driver has reported a position yet
battery  unknown  driver power is not configured
drivers
  drones  mavlink  up  since ${at_ten}  port=14550
assets
  Falcon  drone  online  gps 0s ago  mavlink:1
  Gate    drone  online  gps 0s ago  onvif:2
  gate    drone  online  gps 0s ago  onvif:3
links
  eth1            satellite  online   48 ms, 0.5 % lost  down 1.2 Mbit/s, up 3 kbit/s  today down 1.3 GB, up 50 MB  Skylink 8.8.4.4
  usb\\u{1b}[31m0  cellular   offline
    no carrier: check cable, dish or modem
  wlan0           wifi       unknown
    the first probes are under way
tasks    0 pending, 0 running, 1 completed, 0 failed
  ${at_ten}  Falcon  arm  completed
`);
});

test('status names faults: reasons, a failing disk, an accounting mismatch and the next attempt', async () => {
  const { uplink, outbox } = statusOf();
  const report = statusOf({
    degraded: ['the disk is full; free some space'],
    uplink: {
      ...uplink,
      state: 'waiting',
      next_try_ms: 4_000,
      attempts: 2,
      last_error: 'connection refused',
      rtt_ms: null,
    },
    outbox: {
      ...outbox,
      delivered_to: 'broker',
      balanced: false,
      quarantined: 2,
      health: { state: 'full', detail: 'ENOSPC' },
    },
    drivers: [],
  });
  const { stdout } = await typed(fakeDaemon({ report: () => report }), ['status']);
  for (const words of [
    ': degraded ',
    '  ! the disk is full; free some space',
    'waiting since',
    'attempt 3 in 4s',
    '         connection refused',
    'delivered 100 to the broker + ',
    '+ quarantined 2 +',
    'counters do not match',
    'disk full: ENOSPC',
    'drivers  none configured',
  ]) {
    expect(stdout).toContain(words);
  }
});

test('output is coloured only on terminals that accept colours', async () => {
  const escape = '\u001B[';
  const onTerminal = await typed(fakeDaemon(), ['status'], recordedShell({ isTTY: true }));
  const refused = await typed(
    fakeDaemon(),
    ['status'],
    recordedShell({ isTTY: true, env: { NO_COLOR: '1' } }),
  );
  expect(onTerminal.stdout).toContain(escape);
  expect(refused.stdout).not.toContain(escape);
});

test('status --json is the report itself', async () => {
  const { stdout } = await typed(fakeDaemon(), ['status', '--json']);
  expect(JSON.parse(stdout)).toEqual(statusOf());
});

test('status --watch runs until it is stopped', async () => {
  const stop = new AbortController();
  const shell = recordedShell({ signal: stop.signal, onOutput: () => stop.abort() });
  const { code, stdout } = await typed(fakeDaemon(), ['status', '--watch'], shell);
  expect(code).toBe(0);
  expect(stdout).toContain('uplink   connected');
});

test('status of a kit without a broker announces no next attempt', async () => {
  const report = statusOf({ uplink: { ...statusOf().uplink, state: 'stopped', broker: 'none' } });
  const { stdout } = await typed(fakeDaemon({ report: () => report }), ['status']);
  expect(stdout).toContain('\nuplink   no broker is configured; messages are buffered\nbuffer   ');
});

test('tail writes a line for each message and ends with Ctrl-C', async () => {
  const daemon = fakeDaemon();
  const stop = new AbortController();
  const shell = recordedShell({ signal: stop.signal, onOutput: () => stop.abort() });
  const typing = typed(daemon, ['tail', '--asset', 'falcon'], shell);
  await daemon.followed(1);
  daemon.say(messageOf({ asset: null, channel: 'telemetry', feed: 'telemetry' }));
  daemon.say(messageOf());
  expect(await typing).toEqual({ code: 0, stdout: `${at_ten}  Falcon  gps  lat=52.1 lon=4.3\n`, stderr: '' });
});

test('tail of an unknown asset reports it and waits for the asset', async () => {
  const daemon = fakeDaemon();
  const stop = new AbortController();
  const shell = recordedShell({ signal: stop.signal, onOutput: () => stop.abort() });
  const typing = typed(daemon, ['tail', '--asset', 'Falcno'], shell);
  await daemon.followed(1);
  daemon.say(messageOf({ asset: { ...drone, name: 'Falcno' } }));
  expect(await typing).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('Falcno  gps') as string,
    stderr:
      'there is no asset "Falcno"; did you mean "Falcon"? (kit-connector status lists them); waiting for it (Ctrl-C stops)\n',
  });
});

test('tail reports a feed that no driver publishes, and not one that is only silent', async () => {
  for (const [feed, told] of [
    ['battary', 'feed "battary" not found (did you mean "battery"?); waiting for it (Ctrl-C stops)\n'],
    ['ai_detection', ''],
    ['telemetry', ''],
  ] as const) {
    const daemon = fakeDaemon();
    const stop = new AbortController();
    const shell = recordedShell({ signal: stop.signal, onOutput: () => stop.abort() });
    const typing = typed(daemon, ['tail', '--feed', feed], shell);
    await daemon.followed(1);
    daemon.say(messageOf({ feed }));
    expect(await typing).toMatchObject({ code: 0, stderr: told });
  }
});

test('tail reports that the daemon has stopped', async () => {
  const daemon = fakeDaemon();
  const dir = await makeDirectory();
  const ends = new AbortController();
  const socket = join(dir, 'control.sock');
  await serveLocal(daemon, { socket, gid: undefined, signal: ends.signal });
  const shell = recordedShell();
  const typing = runProgram(['tail', '--json', '--socket', socket], shell);
  await daemon.followed(1);
  ends.abort();
  expect(await typing).toBe(69);
  expect(shell.stderr()).toBe('kit-connector stopped\n');
});

test('task follows a task to its end and exits with 0 when it completes', async () => {
  const daemon = fakeDaemon();
  const { code, stdout } = await typed(daemon, [
    'task',
    'Falcon',
    'set_mode',
    '{"mode":"AUTO"}',
    '--deadline',
    '5',
  ]);
  expect(daemon.dispatched).toMatchObject([
    { asset_id: drone.id, command: 'set_mode', payload: { mode: 'AUTO' }, deadline_s: 5 },
  ]);
  expect(stdout).toBe(`${at_ten}  set_mode  pending\n${at_ten}  arm  completed  {"armed":true}\n`);
  expect(code).toBe(0);
});

test('task prints the reason of a failed task and exits with an error', async () => {
  const task = async () => taskOf({ status: 'failed', result: { error: 'not armable: no GPS fix' } });
  const { code, stdout } = await typed(fakeDaemon({ task }), ['task', 'Falcon', 'arm']);
  expect(stdout).toContain('failed  not armable: no GPS fix');
  expect(code).toBe(1);
});

test('task of an asset lists its commands with their fields', async () => {
  const { stdout, code, stderr } = await typed(fakeDaemon(), ['task', 'Falcon']);
  expect(stderr).toBe('');
  expect(code).toBe(0);
  expect(stdout).toBe(`arm  Arm the motors. Limit 10 s.
goto_waypoint  Fly to a point. Limit 10 s.
    alt_m             number 2 to 120                   metres above home
    wait_for_arrival  boolean, optional, default false  complete on arrival
    mode              AUTO | RTL, optional
${texts.payload_hint}
`);
  const json = await typed(fakeDaemon(), ['task', 'Falcon', '--json']);
  expect(JSON.parse(json.stdout)).toMatchObject([{ name: 'arm' }, { name: 'goto_waypoint' }]);
  const none = await typed(fakeDaemon({ commands: () => [] }), ['task', 'Gate', '--json']);
  expect(none).toMatchObject({ code: 1, stderr: expect.stringContaining('2 assets are named') as string });
});

test('task without arguments lists tasks with the names of their assets', async () => {
  const { stdout } = await typed(fakeDaemon(), ['task']);
  expect(stdout).toBe(`${at_ten}  Falcon  arm  pending\n`);
});

test('buffer shows each lane and points to the quarantine', async () => {
  const { stdout } = await typed(fakeDaemon(), ['buffer']);
  expect(stdout).toBe(
    [
      'lane  messages  size    in memory  oldest',
      `feed  15        3.0 kB  1          ${at_ten}`,
      texts.file_size('81.9 kB', '9.0 GB'),
      '1 in quarantine; list them with kit-connector buffer quarantine list\n',
    ].join('\n'),
  );
});

test('the quarantine is listed with ids, retried by id, and discarded as a whole only with --all', async () => {
  const daemon = fakeDaemon();
  expect((await typed(daemon, ['buffer', 'quarantine', 'list'])).stdout).toContain(
    `8589934593  ${at_ten}  telemetry  2 B   149 packet too large`,
  );
  const shown = await typed(daemon, ['buffer', 'quarantine', 'show', '8589934593']);
  expect(JSON.parse(shown.stdout)).toMatchObject({ code: 149, body: '{}' });
  expect((await typed(daemon, ['buffer', 'quarantine', 'retry', '7', '8'])).stdout).toBe(
    '2 returned to the buffer\n',
  );
  const unsaid = await typed(daemon, ['buffer', 'quarantine', 'discard']);
  expect(unsaid).toMatchObject({
    code: 64,
    stderr: expect.stringContaining('no ids given') as string,
  });
  expect((await typed(daemon, ['buffer', 'quarantine', 'discard', '--all'])).stdout).toBe('3 discarded\n');
  expect(daemon.selections).toEqual([[7, 8], undefined]);
});

test.each(['retry', 'discard'])('to %s a message that is not in quarantine is no success', async (verb) => {
  const nothing: LocalApi = {
    ...fakeDaemon(),
    retryQuarantined: async () => 0,
    discardQuarantined: async () => 0,
  };
  expect(await typed(nothing, ['buffer', 'quarantine', verb, '99'])).toMatchObject({
    code: 1,
    stderr: 'no such id is in quarantine; "kit-connector buffer quarantine list" lists the ids\n',
  });
  const one: LocalApi = {
    ...fakeDaemon(),
    retryQuarantined: async () => 1,
    discardQuarantined: async () => 1,
  };
  expect(await typed(one, ['buffer', 'quarantine', verb, '7', '98', '99'])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(texts.ids_missing(2)) as string,
  });
});

test.each([
  [
    'a payload that is no object',
    ['task', 'Falcon', 'arm', '[1]'],
    64,
    'the payload is not a JSON object: [1]',
  ],
  [
    'a deadline that is no time',
    ['task', 'Falcon', 'arm', '--deadline', '0'],
    64,
    'number of seconds above 0',
  ],
  ['a misspelt subcommand', ['statsu'], 64, 'Did you mean status?'],
  ['an unknown asset', ['task', 'Falcno', 'arm'], 1, 'did you mean "Falcon"?'],
])('%s is told in one sentence', async (_, words, code, sentence) => {
  const result = await typed(fakeDaemon(), words);
  expect(result.code).toBe(code);
  expect(result.stderr).toContain(sentence);
});

test('each view without a daemon prints one line and exits with 69', async () => {
  for (const words of [['status'], ['tail'], ['buffer'], ['task'], ['task', 'a', 'b']]) {
    const shell = recordedShell();
    expect(await runProgram([...words, '--socket', '/nowhere/control.sock'], shell)).toBe(69);
    expect(shell.stderr()).toBe(
      'kit-connector is not running (/nowhere/control.sock: no such file or directory); start it, or name its socket with --socket\n',
    );
  }
});

const good =
  'kit_id: 3f0c1f6e-52a4-4c0e-9d6b-1f2a7c9e4b10\nbroker: { url: "mqtt://b", password_file: password }\n';

test('check answers ok with drivers and broker, warnings apart', async () => {
  const dir = await makeDirectory();
  const file = join(dir, 'config.yaml');
  await writeFile(file, `${good}state_dir: ${dir}/not/yet\ndrivers: [{ driver: gateway }]\n`);
  await writeFile(join(dir, 'password'), 'x', { mode: 0o600 });
  const shell = recordedShell();
  expect(await runProgram(['check', file], shell)).toBe(0);
  expect(shell.stdout()).toBe(`${file}: ok, 1 driver, broker mqtt://b:1883\n`);
  expect(shell.stderr()).toContain('warning: the password crosses the network unencrypted');
  const open = 'drivers: [{ driver: mavlink, options: { links: [{ kind: udp_listen, port: 14550 }] } }]';
  await writeFile(file, `${good}state_dir: ${dir}/not/yet\n${open}\n`);
  const warned = recordedShell();
  expect(await runProgram(['check', file], warned)).toBe(0);
  expect(warned.stderr()).toContain(
    `${file}: warning: driver mavlink: link udp listen 0.0.0.0:14550 takes unsigned frames from any host`,
  );
});

test('check takes its file as --config too, and run and status hint at --config for a file', async () => {
  const dir = await makeDirectory();
  const file = join(dir, 'config.yaml');
  await writeFile(file, 'kit: 1\n');
  const shell = recordedShell();
  for (const args of [
    ['check', '--config', file],
    ['check', '-c', file, '--quiet'],
  ]) {
    expect(await runProgram(args, shell)).toBe(78);
  }
  expect(shell.stderr()).toContain(`${file}:1:1 kit: unknown key`);
  for (const command of ['run', 'status', 'doctor', 'setup']) {
    const hinted = recordedShell();
    expect(await runProgram([command, file], hinted)).toBe(64);
    expect(hinted.stderr()).toContain(texts.config_hint);
  }
});

test('check prints every fault in a separate line and exits with 78', async () => {
  const dir = await makeDirectory();
  const file = join(dir, 'config.yaml');
  await writeFile(file, 'kit: 1\nkit_id: x\n');
  const shell = recordedShell();
  expect(await runProgram(['check', file], shell)).toBe(78);
  expect(shell.stderr().trimEnd().split('\n')).toHaveLength(2);
});

test('check finds a state_dir that cannot be written', async ({ skip }) => {
  skip(process.getuid?.() === 0, 'root may write anywhere');
  const dir = await makeDirectory();
  const file = join(dir, 'config.yaml');
  await mkdir(join(dir, 'state'));
  await chmod(join(dir, 'state'), 0o500);
  await writeFile(file, `kit_id: 3f0c1f6e-52a4-4c0e-9d6b-1f2a7c9e4b10\nstate_dir: ${dir}/state\n`);
  const shell = recordedShell();
  expect(await runProgram(['check', file], shell)).toBe(78);
  expect(shell.stderr()).toContain('this user cannot write');
});
