/** Error codes and the forms in which firmware tells what a camera sees. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { abilitiesOf, abilityReply } from '../../../../drivers/vendorcam/host/abilities.ts';
import { alarmsOfEvents, alarmsOfStates } from '../../../../drivers/vendorcam/channels/alarms.ts';
import { texts as driver_texts } from '../../../../src/toolkit/driver/texts.ts';
import { identitiesOf, streamOf } from '../../../../drivers/vendorcam/channels/describe.ts';
import { Line } from '../../../../drivers/vendorcam/host/device.ts';
import { limits } from '../../../../drivers/vendorcam/limits.ts';
import { vendorcamOptions } from '../../../../drivers/vendorcam/options.ts';
import { readReplies, type Command, type Outcome } from '../../../../drivers/vendorcam/host/replies.ts';
import { faultOf, afterAcceptance } from '../../../../drivers/vendorcam/host/rsp-codes.ts';
import { DeviceUnreachable } from '../../../../src/platform/errors.ts';
import { aborted } from '../../../../src/platform/time.ts';
import { forAll } from '../../../support/for-all.ts';
import { texts } from '../../../../drivers/vendorcam/texts.ts';
import { newAsking, poll } from '../../../../drivers/vendorcam/channels/poll.ts';

describe('an error code', () => {
  it.each([
    [-1, 'not exist', 'bad_request', /lacks a parameter/u],
    [-4, 'param error', 'bad_request', /rejected a parameter/u],
    [-5, 'max session', 'sessions_full', /close other programs/u],
    [-6, 'please login first', 'session', /session .* lost/u],
    [-7, 'login failed', 'credentials', /correct username and password_file/u],
    [-8, 'timeout', 'passing', /timed out in the device/u],
    [-9, 'not support', 'unsupported', /does not support/u],
    [-10, 'protocol', 'unsupported', /does not understand/u],
    [-12, 'get config failed', 'passing', /read its own settings/u],
    [-13, 'set config failed', 'passing', /store its settings/u],
    [-16, 'send failed', 'too_large', /batch was too large/u],
    [-17, 'rcv failed', 'passing', /no answer from its own/u],
    [-21, 'error token', 'session', /session with the device has expired/u],
    [-26, 'ability error', 'forbidden', /administrator/u],
    [-27, 'invalid user', 'credentials', /user name or password/u],
    [-49, 'Channel invalid', 'bad_request', /no such channel/u],
    [-99, 'Device offline', 'channel_offline', /does not answer its recorder/u],
    [-105, 'Frequent logins, please try again later!', 'sessions_full', /blocks logins for a while/u],
    // The vendor's Camera HTTP API guide, version 7, section 4.1.
    [-2, 'out of mem', 'passing', /out of memory/u],
    [-11, 'fcgi read failed', 'passing', /no answer from its own/u],
    [-48, 'Fetching a picture failed', 'passing', /could not take a picture/u],
    [-500, 'The number of IP addresses reaches the upper limit', 'sessions_full', /no more addresses/u],
    [-501, 'The user does not exist', 'credentials', /no such user/u],
    [-502, 'Password err', 'credentials', /user name or password rejected/u],
    // home-assistant/core#177363, #181837: while its web page takes the same login.
    [-503, 'login deny', 'credentials', /denies the login and does not say why/u],
    [-505, 'Login not init', 'passing', /not ready/u],
    [-506, 'Login has been locked', 'credentials', /account is locked/u],
    [-507, 'Login reach max', 'sessions_full', /takes no more logins/u],
    [-1234, 'odd', 'unknown', /error -1234 \(odd\)/u],
    [7, 'odd', 'unknown', /error 7 \(odd\)/u],
  ] as const)('%s (%s) is of kind %s and reports what to do', (code, detail, kind, sentence) => {
    for (const fault of [faultOf(code, detail), faultOf(code, detail === 'odd' ? detail : '')]) {
      expect(fault.kind).toBe(kind);
      expect(fault.sentence).toMatch(sentence);
    }
  });

  it('is known by its words too, when the number is another', () => {
    expect(faultOf(-1, 'password wrong').kind).toBe('credentials');
    expect(faultOf(-1, 'Login has been locked').sentence).toMatch(/locked/u);
  });

  it('may hide in a reply that calls itself a success', () => {
    const [reply] = readReplies('[{"cmd":"PtzCtrl","code":0,"value":{"rspCode":-13}}]');
    expect(reply).toMatchObject({ fault: { code: -13 } });
  });
});

describe('what a camera sees', () => {
  const on = { alarm_state: 1, support: 1 };
  const off = { alarm_state: 0, support: 1 };
  const none = { alarm_state: 0, support: 0 };

  it.each([
    ['a doorbell', { ai: { cry: none, people: on, package: off }, md: on, visitor: off }, true, ['people']],
    ['a camera without detectors', { ai: { people: none, face: none }, md: off }, false, null],
    ['a battery camera, by its infrared sensor', { ai: { other: on, people: off }, md: none }, true, []],
    [
      'a camera with lists that latch',
      { ai: { people: off, crossline: [{ people_state: 1 }] }, md: off },
      false,
      [],
    ],
    [
      'all five',
      { ai: { people: on, vehicle: on, dog_cat: on, face: on, package: on }, md: on },
      true,
      ['people', 'vehicle', 'dog_cat', 'face', 'package'],
    ],
  ])('is read from the events of %s', (_what, value, motion, ai) => {
    const bell = 'visitor' in value ? { visitor: false } : {};
    expect(alarmsOfEvents({ value: { channel: 0, ...value } })).toMatchObject({ motion, ai, ...bell });
  });

  it('is read from the states of newer and older firmware', () => {
    const md = { value: { state: 1 } };
    expect(alarmsOfStates(md, { value: { channel: 1, face: none, people: on, vehicle: off } })).toMatchObject(
      {
        motion: true,
        ai: ['people'],
      },
    );
    expect(
      alarmsOfStates({ value: { state: 0 } }, { value: { channel: 1, face: 0, people: 1, vehicle: 0 } }),
    ).toMatchObject({
      motion: false,
      ai: ['people'],
    });
    // RLC-510A, firmware v3.0.0.177 (fwestenberg/reolink_dev#342).
    expect(alarmsOfStates(md, { value: { channel: 0, people_state: 1, vehicle_state: 0 } })).toMatchObject({
      motion: true,
      ai: ['people'],
    });
    const fault = faultOf(-9, '');
    expect(alarmsOfStates({ fault }, { fault })).toMatchObject({ motion: null, ai: null });
  });

  it('never throws, whatever JSON the camera sends', () => {
    forAll(fc.jsonValue(), (value) => {
      alarmsOfEvents({ value });
      alarmsOfStates({ value }, { value });
      abilityReply.safeParse(value);
    });
  });

  it('is an unreachable device, not a crash, when the text is no reply', () => {
    forAll(fc.oneof(fc.string(), fc.json()), (text) => {
      let thrown: unknown = new DeviceUnreachable('');
      try {
        readReplies(text);
      } catch (error) {
        thrown = error;
      }
      expect(thrown).toBeInstanceOf(DeviceUnreachable);
    });
  });
});

describe('abilities', () => {
  const of = (channel: object, host: object = {}) =>
    abilitiesOf(abilityReply.parse({ Ability: { abilityChn: [channel], ...host } }));
  const motor = { ptzCtrl: { permit: 7, ver: 1 }, ptzPreset: { permit: 7, ver: 1 } };

  it.each([
    [0, false, false],
    [1, false, false],
    [2, true, true],
    [3, true, true],
    [4, true, false],
    [5, true, false],
    [6, true, false],
    [7, true, false],
  ])('of motor type %s', (ver, canMove, takesSpeed) => {
    const found = of({ ...motor, ptzType: { permit: 0, ver } }).ofChannel(0);
    expect(found).toMatchObject({ canMove, takesSpeed, hasPresets: canMove });
  });

  it.each(['alarmAudio', 'supportAudioAlarm'])('have a siren where the channel has %s', (name) => {
    expect(of({ [name]: { permit: 6, ver: 1 } }).ofChannel(0).hasSiren).toBe(true);
    expect(of({ [name]: { permit: 0, ver: 0 } }).ofChannel(0).hasSiren).toBe(false);
  });

  it('follow what the user may do', () => {
    const found = of(
      { ptzCtrl: { permit: 4, ver: 1 }, alarmMd: { permit: 4, ver: 1 } },
      { reboot: { permit: 0, ver: 1 } },
    );
    expect(found.canReboot).toBe(false);
    expect(found.ofChannel(0)).toMatchObject({ canMove: false, canSetMotion: false });
    expect(found.ofChannel(7)).toMatchObject({ canMove: false, canSetMotion: false });
  });
});

it('an identity is the UID, else the MAC, else the label of the options', () => {
  const none = { mac: false, uid: false, label: undefined } as const;
  const mac = 'EC:71:DB:0A:0B:0C';
  expect(identitiesOf({ ...none, mac, uid: '9527000000000001' })).toEqual([
    'vendorcam:9527000000000001',
    'vendorcam:ec71db0a0b0c',
  ]);
  expect(identitiesOf({ ...none, mac, uid: '' })).toEqual(['vendorcam:ec71db0a0b0c']);
  expect(identitiesOf({ ...none, mac: '00:00:00:00:00:00', label: 'L-77' })).toEqual(['vendorcam:L-77']);
  expect(identitiesOf(none)).toEqual([]);
});

it('the stream has the address that the kit uses, the path that the camera reports, and escaped credentials', () => {
  const [options] = vendorcamOptions.parse({
    hosts: [{ name: 'a', host: '10.1.1.9', username: 'kit', password_file: '/p' }],
  }).hosts;
  if (!options) throw new Error('no host');
  const host = { options, password: "p@ss/:'", rtsp_port: 8554 };
  const told = {
    value: { rtspUrl: { mainStream: '', subStream: 'rtsp://192.0.2.1:554/h264Preview_01_sub' } },
  };
  expect(streamOf(told, 0, host)?.rtsp_url).toBe("rtsp://kit:p%40ss%2F%3A'@10.1.1.9:8554/h264Preview_01_sub");
  expect(streamOf(undefined, 8, host)?.rtsp_url).toMatch(/:8554\/h264Preview_09_sub$/u);
});

it('the stream of a device that shares its host with another is at rtsp_port, else it is withheld', () => {
  const entry = { name: 'a', host: '10.1.1.9', username: 'kit', password_file: '/p' };
  const [plain, set] = vendorcamOptions.parse({
    hosts: [entry, { ...entry, name: 'b', port: 8_443, rtsp_port: 8_555 }],
  }).hosts;
  if (!plain || !set) throw new Error('no host');
  const behind = { password: 'p', rtsp_port: 554, is_host_shared: true };
  const withheld = { rtsp_url: null, stream_fault: driver_texts.shared_host };
  expect(streamOf(undefined, 0, { ...behind, options: plain })).toEqual(withheld);
  const stream = streamOf(undefined, 0, { ...behind, options: set });
  expect(stream?.rtsp_url).toBe('rtsp://kit:p@10.1.1.9:8555/h264Preview_01_sub');
});

it('one request at a time is under way, and an urgent one goes first and drives a poll away', async () => {
  const line = new Line({ ...limits, urgent_wait_ms: 1 }, new AbortController().signal);
  const order: string[] = [];
  const poll = line.take('read', async (giveUp) => {
    await aborted(giveUp);
    order.push('poll');
  });
  const setting = line.take('write', async () => void order.push('setting'));
  const stop = line.take('urgent', async () => void order.push('stop'));
  await Promise.all([poll, setting, stop]);
  expect(order).toEqual(['poll', 'stop', 'setting']);
});

it('an urgent request does not wait for a poll once the driver stops', async () => {
  const stopping = new AbortController();
  const line = new Line({ ...limits, urgent_wait_ms: 1_000_000 }, stopping.signal);
  const poll = line.take('read', aborted);
  const logout = line.take('urgent', async () => 'sent');
  stopping.abort();
  await poll;
  expect(await logout).toBe('sent');
});

describe('Error codes of the cameras', () => {
  it.each([
    ['Privacy mode', 'privacy', texts.privacy_mode],
    ['user is locked', 'credentials', texts.account_locked],
    ['login times reach max', 'sessions_full', texts.logins_full],
    ['login deny', 'credentials', texts.login_denied],
    // xannor/ha_reolink_rest#39, of a login.
    ['busy', 'passing', texts.code_busy],
    ['password wrong', 'credentials', texts.login_rejected],
    ['max session', 'sessions_full', texts.sessions_full],
    ['please login first', 'session', texts.code_session_lost],
  ] as const)('prefers the words "%s" to the number', (detail, kind, sentence) => {
    const fault = faultOf(-9, detail);
    expect(fault).toMatchObject({ code: -9, kind, detail });
    const [cause = '', remedy = ''] = sentence.split('; ');
    expect(fault.sentence.startsWith(`${cause} (error -9: ${detail})`)).toBe(true);
    expect(fault.sentence.endsWith(remedy)).toBe(true);
  });

  it.each([-500, -501, -503, -504, -505, -507])(
    'calls %i no wrong password and no locked account',
    (code) => {
      expect(faultOf(code, '').text).not.toMatch(/rejected|locked/u);
    },
  );

  it('that refuses what was accepted before is no evidence that the password is wrong', () => {
    const fault = afterAcceptance(faultOf(-7, 'login failed'));
    expect(fault).toMatchObject({ kind: 'credentials', text: texts.login_rejected_now });
    expect(fault.sentence).toContain('(error -7: login failed)');
    expect(afterAcceptance(faultOf(-506, '')).text).toBe(texts.account_locked);
  });

  it('names code and words of an unknown error', () => {
    expect(faultOf(-4_711, 'out of paper').sentence).toBe(texts.code_other(-4_711, ' (out of paper)'));
    expect(faultOf(-4_711, '').sentence).toBe(texts.code_other(-4_711, ''));
  });

  it('cuts the words of a device at 200 characters', () => {
    expect(faultOf(-1, 'x'.repeat(5_000)).detail).toHaveLength(200);
  });
});

/** A host that answers from a table; what is not in it is not supported. */
function hostWith(answers: Readonly<Record<string, unknown>>) {
  const asked: string[] = [];
  const ask = async (commands: readonly Command[]): Promise<readonly Outcome[]> =>
    commands.map(({ cmd }) => {
      asked.push(cmd);
      return cmd in answers ? { value: answers[cmd] } : { fault: faultOf(-9, '') };
    });
  return { ask, asked };
}

/** The same host, with what it answers to GetEvents. */
function refusing(code: number) {
  const host = hostWith(old_firmware);
  const ask = async (commands: readonly Command[]): Promise<readonly Outcome[]> => {
    const outcomes = await host.ask(commands);
    return outcomes.map((outcome, index) =>
      commands[index]?.cmd === 'GetEvents' ? { fault: faultOf(code, '') } : outcome,
    );
  };
  return { ...host, ask };
}

const old_firmware = { GetMdState: { state: 1 }, GetAiState: { channel: 0, people: 1 } };

it('asks a camera that refuses GetEvents in the older way, from the next poll on', async () => {
  const host = hostWith(old_firmware);
  const asking = newAsking(0);
  expect((await poll(host, [asking], { hasChannelList: false })).seen.size).toBe(0);
  const { seen } = await poll(host, [asking], { hasChannelList: false });
  expect(seen.get(0)).toMatchObject({ alarms: { motion: true, ai: ['people'] } });
  await poll(host, [asking], { hasChannelList: false });
  expect(host.asked.filter((cmd) => cmd === 'GetEvents')).toHaveLength(1);
});

it('tries GetEvents again after a while: the camera may only have been busy', async () => {
  const asking = newAsking(0);
  await poll(hostWith(old_firmware), [asking], { hasChannelList: false });
  const minutes = (asking.events_again_mono_ms - performance.now()) / 60_000;
  expect(minutes).toBeGreaterThan(9);
  expect(minutes).toBeLessThanOrEqual(10);
  asking.events_again_mono_ms = performance.now();
  const host = hostWith({
    GetEvents: { md: { alarm_state: 0, support: 0 }, ai: { other: { alarm_state: 1 } } },
  });
  const { seen } = await poll(host, [asking], { hasChannelList: false });
  expect(seen.get(0)).toMatchObject({ alarms: { motion: true, ai: null } });
  expect(host.asked).toEqual(['GetEvents']);
});

it.each([-1, -4, -8, -12, -13, -17, -26])(
  'asks a camera that answers %s to GetEvents twice in the older way, and GetEvents again later',
  async (code) => {
    const host = refusing(code);
    const asking = newAsking(0);
    expect((await poll(host, [asking], { hasChannelList: false })).seen.get(0)).toMatchObject({
      fault: { code },
    });
    await poll(host, [asking], { hasChannelList: false });
    const { seen } = await poll(host, [asking], { hasChannelList: false });
    expect(seen.get(0)).toMatchObject({ alarms: { motion: true, ai: ['people'] } });
    const again_ms = asking.events_again_mono_ms - performance.now();
    expect(again_ms).toBeGreaterThan(50_000);
    expect(again_ms).toBeLessThanOrEqual(600_000);
  },
);
