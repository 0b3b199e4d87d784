/** Events that a camera pushes on its own port, beside the polls over HTTP. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { type Limits, limits as usual_limits } from '../../../../../drivers/vendorcam/limits.ts';
import { vendorcamOptions } from '../../../../../drivers/vendorcam/options.ts';
import { isHostShared } from '../../../../../src/toolkit/driver/host-option.ts';
import { receivePush, whyOff } from '../../../../../drivers/vendorcam/push/push.ts';
import { commands } from '../../../../../drivers/vendorcam/push/wire.ts';
import { texts } from '../../../../../drivers/vendorcam/texts.ts';
import { FakePushPort, type PushMood } from '../../../../fakes/fake-push-port.ts';
import type { FakeVendorCameraOptions } from '../../../../fakes/fake-vendor-camera.ts';
import { password, vendorcamLab, type VendorcamLab } from '../../../../support/cameras/vendorcam-lab.ts';
import { elapse } from '../../../../support/elapse.ts';
import { eventually } from '../../../../support/eventually.ts';
import { freePort } from '../../../../support/ports.ts';

const quick = {
  push_login_ms: 400,
  push_keep_alive_ms: 60,
  push_silent_ms: 250,
  push_retry: { retry_first_ms: 40, retry_max_ms: 80 },
  push_settle_ms: 150,
  woken_gap_ms: 50,
};

let lab: (VendorcamLab & { push: FakePushPort }) | undefined;
afterEach(async () => {
  await lab?.stop();
  await lab?.push.close();
  lab = undefined;
});

interface About extends FakeVendorCameraOptions {
  readonly mood?: PushMood;
  /** Of the host in the configuration. */
  readonly more?: object;
  readonly poll_s?: number;
  readonly limits?: Partial<Limits>;
  readonly begin?: (lab: VendorcamLab) => void;
}

/** Starts the driver against a camera with a port for events; polls are rare, so that what comes early was pushed. */
async function running({ mood = 'well', more = {}, poll_s = 5, begin, limits, ...about }: About = {}) {
  const made = await vendorcamLab({ ...about, limits: { ...quick, ...limits } });
  const push = new FakePushPort(made.camera.sessions, made.camera.channels);
  push.mood = mood;
  await push.listen(await freePort());
  begin?.(made);
  const options = made.options({ push_port: push.port, ...more }, { poll_s, poll_slow_s: poll_s });
  lab = Object.assign(made, { push });
  made.start(options);
  await made.online();
  return lab;
}

const status = (): string => {
  const facts = lab?.hub.hub.drivers()[0]?.facts ?? {};
  return String(facts['gate'] ?? '');
};

describe('a camera that pushes its events', () => {
  it('has motion, kinds and their end published as they happen, with polls five seconds apart', async () => {
    const { camera, push, feed } = await running();
    await eventually('it is subscribed', () => push.subscribers === 1);
    await eventually('the first poll is published', () => feed('motion').length === 1);
    const polls = camera.count('GetEvents');
    camera.camera.motion = true;
    camera.camera.ai.add('people');
    await eventually('motion is published', () => feed('motion').length === 2);
    await eventually('the kind is published', () => feed('ai_detection').length === 2);
    camera.camera.motion = false;
    camera.camera.ai.clear();
    await eventually('both end', () => feed('motion').length === 3 && feed('ai_detection').length === 3);
    expect(camera.count('GetEvents')).toBe(polls);
    expect(feed('motion').map(({ detected }) => detected)).toEqual([false, true, false]);
    expect(feed('ai_detection')[1]).toMatchObject({ detected: true, types: ['people'] });
    await eventually('the status shows it', () => status() === `online; ${texts.push_live}`);
  });

  it('has each event published once, however often polls and pushes repeat it', async () => {
    const { camera, push, feed } = await running({ poll_s: 0.2 });
    await eventually('it is subscribed', () => push.subscribers === 1);
    await eventually('the first poll is published', () => feed('motion').length === 1);
    for (const motion of [true, false, true, false]) {
      const before = feed('motion').length;
      const sent = push.alarms;
      camera.camera.motion = motion;
      await eventually('it is pushed', () => push.alarms > sent);
      await eventually('the edge is published', () => feed('motion').length === before + 1);
      const polls = camera.count('GetEvents');
      await eventually('two polls repeat it', () => camera.count('GetEvents') >= polls + 2);
    }
    expect(feed('motion').map(({ detected }) => detected)).toEqual([false, true, false, true, false]);
  });

  it('is not contradicted by a poll that was answered before the event', async () => {
    // However late that answer comes on a busy machine.
    const { camera, push, feed } = await running({ poll_s: 0.2, limits: { push_settle_ms: 600_000 } });
    await eventually('it is subscribed', () => push.subscribers === 1);
    await eventually('the first poll is published', () => feed('motion').length === 1);
    // Its answers over HTTP stay behind: they show no motion at all.
    const xml = `<?xml version="1.0" encoding="UTF-8" ?><body><AlarmEventList><AlarmEvent><channelId>0</channelId><status>MD</status><AItype>none</AItype></AlarmEvent></AlarmEventList></body>`;
    const polls = camera.count('GetEvents');
    camera.mood = 'slow';
    await eventually('a slow poll is under way', () => camera.count('GetEvents') > polls);
    push.send(xml);
    await eventually('motion is published', () => feed('motion').at(-1)?.['detected'] === true);
    camera.camera.motion = true;
    camera.mood = 'well';
    const later = camera.count('GetEvents');
    await eventually('later polls repeat it', () => camera.count('GetEvents') >= later + 3);
    expect(feed('motion').map(({ detected }) => detected)).toEqual([false, true]);
  });

  it('is polled again when its connection ends, and pushes again once it is back', async () => {
    const { camera, push, feed } = await running({ poll_s: 0.2 });
    await eventually('it is subscribed', () => push.subscribers === 1);
    await eventually('the first poll is published', () => feed('motion').length === 1);
    await push.close();
    camera.camera.motion = true;
    await eventually('a poll publishes motion', () => feed('motion').length === 2);
    await eventually('the status names the answer and the next try', () =>
      /events by polling \(push: .*next try \d{4}-/u.test(status()),
    );
    await push.listen();
    await eventually('it is subscribed again', () => push.subscribers === 1);
    await eventually('the status shows it', () => status().includes(texts.push_live));
    expect(lab?.hub.log.at('warn')).toEqual(lab?.hub.log.at('warn').filter((line) => line === texts.no_tls));
  });

  it('gets keep-alive requests, and an answer to its own', async () => {
    const { push } = await running();
    await eventually('it is asked', () => push.count(commands.keep_alive) >= 3);
    push.heartbeat();
    await eventually('its own question is answered', () => push.heartbeats.length === 1);
    expect(push.heartbeats[0]).toMatchObject({ id: 0x0102_03fa, status: 200 });
    expect(push.logins).toBe(1);
  });

  it('gets one answer to its question when it answers that one, too', async () => {
    const { push } = await running({ mood: 'echoes' });
    await eventually('it is subscribed', () => push.subscribers === 1);
    push.heartbeat();
    const before = push.count(commands.keep_alive);
    await eventually('it is asked', () => push.count(commands.keep_alive) >= before + 3);
    expect(push.heartbeats).toHaveLength(1);
  });

  it('has a camera that wakes up polled at once, with polls a minute apart', async () => {
    const { camera, push, feed } = await running({
      channels: 2,
      poll_s: 60,

      begin: ({ camera: { channels } }) => Object.assign(channels[1] ?? {}, { asleep: true }),
    });
    await eventually('it is subscribed', () => push.subscribers === 1);
    Object.assign(camera.channels[1] ?? {}, { asleep: false, motion: true });
    await eventually('motion is published', () => feed('motion', 'Cam 2').at(-1)?.['detected'] === true);
  });

  it('is polled no sooner for channels that are not served', async () => {
    const { camera, push } = await running({ channels: 2, poll_s: 60, more: { channels: [0] } });
    await eventually('it is subscribed', () => push.subscribers === 1);
    await eventually('it is polled', () => camera.count('GetEvents') > 0);
    const polls = camera.count('GetEvents');
    const alarms = push.alarms;
    camera.channels[1]?.ai.add('people');
    Object.assign(camera.channels[1] ?? {}, { motion: true });
    await eventually('it reports', () => push.alarms > alarms);
    await elapse(300);
    expect(camera.count('GetEvents')).toBe(polls);
  });

  it('reports a doorbell and the channels of a recorder', async () => {
    const { camera, push, feed } = await running({
      channels: 3,
      begin: ({ camera: { channels } }) => {
        const [, second] = channels;
        if (second) second.rings = false;
      },
    });
    await eventually('it is subscribed', () => push.subscribers === 1);
    await eventually('all are polled', () =>
      ['Cam 1', 'Cam 2', 'Cam 3'].every((name) => feed('motion', name).length === 1),
    );
    const [, second, third] = camera.channels;
    if (second) second.rings = true;
    if (third) third.motion = true;
    await eventually('the bell is published', () => feed('doorbell', 'Cam 2').length === 1);
    await eventually('motion is published', () => feed('motion', 'Cam 3').length === 2);
    expect(feed('motion', 'Cam 1')).toHaveLength(1);
    expect(push.clients.size).toBe(1);
  });

  it('never receives the password, and nothing logs it', async () => {
    const { push, hub } = await running();
    await eventually('it is asked', () => push.count(commands.keep_alive) >= 1);
    const sent = Buffer.concat(push.received.map(({ payload }) => payload)).toString('latin1');
    expect(sent).not.toContain(password);
    expect(push.received.map(({ command }) => command)).not.toContain(2);
    expect(JSON.stringify([hub.log.lines, hub.outbox.drafts])).not.toContain(password);
  });

  it('is disconnected when the connector stops', async () => {
    const { push, hub } = await running();
    await eventually('it is subscribed', () => push.subscribers === 1);
    await hub.stop();
    await eventually('the connection is closed', () => push.clients.size === 0);
  });
});

describe('a port for events that misbehaves', () => {
  it.each<[PushMood, string]>([
    ['is busy', texts.push_login_status(503)],
    ['refuses the subscription', texts.push_subscribe_status(400)],
    ['no nonce', texts.push_no_nonce],
    ['garbage', texts.push_no_frame],
    ['announces a giant', texts.push_frame_large(262_144)],
    ['floods', texts.push_flood(200)],
    ['drips', texts.push_silent],
    ['accepts and is silent', texts.push_silent],
    ['falls silent', texts.push_silent],
    ['cuts off', texts.push_closed],
  ])(
    'that "%s" leaves the camera polled and online, and the status shows the reason',
    async (mood, reason) => {
      const { camera, feed, hub } = await running({ mood, poll_s: 0.2 });
      await eventually('the reason is shown', () => status().includes(reason));
      camera.camera.motion = true;
      await eventually('a poll publishes motion', () => feed('motion').at(-1)?.['detected'] === true);
      expect(hub.log.at('error')).toEqual([]);
      expect(lab?.asset('Gate')?.status).toBe('online');
    },
  );

  it('that refuses the password is asked once, also after a restart, and the camera stays online', async () => {
    const { push, camera, restart, options, feed } = await running({ mood: 'refuses', poll_s: 0.2 });
    // home-assistant/core#139710: status 401 with the right password, which HTTP accepts.
    await eventually('the reason is shown', () => status().includes(texts.push_refused));
    const again = options({ push_port: push.port });
    await restart(again);
    await eventually('it is polled', () => camera.count('GetEvents') > 3);
    await eventually('the reason is shown again', () => status().includes('rejected on its event port'));
    await elapse(300);
    // The request for a nonce and the login.
    expect(push.count(commands.login)).toBe(2);
    camera.camera.motion = true;
    await eventually('a poll publishes motion', () => feed('motion').at(-1)?.['detected'] === true);
    expect(camera.sessions.failures).toBe(0);
  });

  it('is not asked at all while the login over HTTP is refused', async () => {
    const made = await vendorcamLab({ limits: quick });
    const push = new FakePushPort(made.camera.sessions, made.camera.channels);
    await push.listen(await freePort());
    lab = Object.assign(made, { push });
    made.camera.sessions.password = 'another';
    made.start(made.options({ push_port: push.port }));
    await eventually('the driver is rejected', () => made.hub.hub.drivers()[0]?.state === 'rejected');
    expect(push.logins).toBe(0);
    expect(push.clients.size).toBe(0);
  });
});

describe('a port for events that is left alone', () => {
  /** Returns the status of a camera that was polled for a while. */
  const statusOf = async (about: About): Promise<string> => {
    const { push, camera } = await running({ poll_s: 0.2, ...about });
    await eventually('it is polled', () => camera.count('GetEvents') > 3);
    expect(push.received).toEqual([]);
    expect(push.clients.size).toBe(0);
    return status();
  };
  const off = (reason: string): string => `online; ${texts.push_off(reason, '')}`;

  it('is that of a camera with a battery, which it would keep awake', async () => {
    const begin = ({ camera }: VendorcamLab): void => {
      camera.camera.hasBattery = true;
    };
    expect(await statusOf({ begin })).toBe(off(texts.push_battery));
  });

  it('is one without TLS where the options name a certificate', async () => {
    const certificate_sha256 = '00'.repeat(32);
    expect(await statusOf({ more: { certificate_sha256 } })).toBe(off(texts.push_certificate));
  });

  it('is one that the options switch off', async () => {
    expect(await statusOf({ more: { push: 'never' } })).toBe('online');
  });

  it('is at a host that it shares with another device, as behind a router that forwards to one of them', async () => {
    const [own, other] = ['gate', 'yard'].map((name) => ({ name, host: '192.0.2.7', password_file: '/p' }));
    const hosts = vendorcamOptions.parse({ hosts: [own, { ...other, port: 8_443 }] }).hosts;
    expect(hosts.map((each) => isHostShared(each, hosts))).toEqual([true, true]);
    expect(hosts.map((each) => isHostShared(each, [each]))).toEqual([false, false]);
    const [gate] = hosts;
    expect(gate && whyOff(gate, { is_host_shared: true })).toBe(texts.push_shared_host);
    expect(gate && whyOff({ ...gate, push_port: 9_001 }, { is_host_shared: true })).toBe('');
  });

  it('is any of this gateway itself that a device names', async () => {
    expect(await statusOf({ more: { push_port: undefined } })).toBe(off(texts.push_own_host));
  });
});

it('a port for events without TLS is used with a certificate where the options say always', async () => {
  const { push } = await running({ more: { certificate_sha256: '00'.repeat(32), push: 'always' } });
  await eventually('it is subscribed', () => push.subscribers === 1);
  await eventually('the status shows it', () => status() === `online; ${texts.push_live}`);
});

it('a driver that ended while it read the password opens no connection for events, and keeps none', async () => {
  const port = await freePort();
  const reached: string[] = [];
  const camera = createServer(() => reached.push('connected')).listen(port, '127.0.0.1');
  await once(camera, 'listening');
  try {
    await receivePush({
      host: '127.0.0.1',
      port,
      username: 'kit',
      password,
      limits: usual_limits,
      signal: AbortSignal.abort(),
      onUp: () => reached.push('subscribed'),
      onReports: () => undefined,
    });
    expect(reached).toEqual([]);
  } finally {
    camera.close();
  }
});
