import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { texts } from '../../../../drivers/vendorradio/texts.ts';
import { Ubus } from '../../../../drivers/vendorradio/ubus/ubus.ts';
import {
  type Answer,
  answersIn,
  answerWords,
  type Call,
  listIn,
  requestText,
} from '../../../../drivers/vendorradio/ubus/ubus-wire.ts';
import { CommandRefused, DeviceRejected, DeviceUnreachable } from '../../../../src/platform/errors.ts';
import { LoginGuard } from '../../../../src/toolkit/device/login-guard.ts';
import { pinnedHttp, type PinnedHttp } from '../../../../src/toolkit/device/pinned-http.ts';
import { FakeRadio } from '../../../fakes/fake-radio.ts';
import { quick_limits } from '../../../support/drivers/vendorradio-lab.ts';
import { forAll } from '../../../support/for-all.ts';
import snmp from 'net-snmp';
import { walk } from '../../../../drivers/vendorradio/snmp/snmp-session.ts';

const radios: FakeRadio[] = [];
const clients: PinnedHttp[] = [];
afterEach(async () => {
  for (const http of clients.splice(0)) http.close();
  await Promise.all(radios.splice(0).map(async (radio) => radio.stop()));
});

async function radioOn(): Promise<FakeRadio> {
  const radio = new FakeRadio();
  radios.push(radio);
  await radio.start();
  return radio;
}

function ubusTo(radio: FakeRadio, password = 'secret'): Ubus {
  const http = pinnedHttp({
    host: '127.0.0.1',
    port: radio.port,
    tls: false,
    check: async () => undefined,
    connect_ms: 5_000,
    reply_bytes_max: 100_000,
    refused_remedy: '',
  });
  clients.push(http);
  const limits = { ...quick_limits, request_ms: 10_000 };
  const guard = new LoginGuard({ memory: { facts: {}, change: async () => undefined }, limits });
  return new Ubus({ http, path: '/ubus', username: 'kit', password: async () => password, limits, guard });
}

const info: Call = { object: 'iwinfo', method: 'info', args: { device: 'wlan0' } };
const system: Call = { object: 'system', method: 'info' };
const reply = (more: object): string => JSON.stringify({ jsonrpc: '2.0', id: 1, ...more });

describe('an answer on the wire', () => {
  it.each<readonly [string, object, Answer]>([
    ['a body', { result: [0, { up: 1 }] }, { kind: 'ok', body: { up: 1 } }],
    ['success without a body', { result: [0] }, { kind: 'ok', body: undefined }],
    ['-32000', { error: { code: -32_000, message: 'Object not found' } }, { kind: 'absent' }],
    ['-32001', { error: { code: -32_001, message: 'Session not found' } }, { kind: 'denied' }],
    ['-32002', { error: { code: -32_002, message: 'Access denied' } }, { kind: 'denied' }],
    [
      '-32003',
      { error: { code: -32_003, message: 'ubus request timed out' } },
      { kind: 'failed', sentence: 'a timeout in its web server' },
    ],
    [
      '-32700',
      { error: { code: -32_700, message: 'Parse error' } },
      { kind: 'failed', sentence: 'error -32700 Parse error' },
    ],
    ['an error without words', { error: { code: -32_603 } }, { kind: 'failed', sentence: 'error -32603' }],
    ['no status', { result: [] }, { kind: 'failed', sentence: 'an answer without a status' }],
    ['nothing', {}, { kind: 'failed', sentence: 'an answer without a status' }],
  ])('is read: %s', (_what, more, answer) => {
    expect(answersIn(reply(more), 1)).toEqual([answer]);
  });

  it.each([
    [1, 'an invalid command'],
    [2, 'an invalid argument'],
    [3, 'an unknown method'],
    [4, 'not found'],
    [5, 'no data'],
    [6, 'no permission'],
    [7, 'a timeout in the radio'],
    [8, 'not supported'],
    [9, 'an unknown error in the radio'],
    [10, 'a lost connection within the radio'],
    [11, 'no memory left in the radio'],
    [12, 'a parse error in the radio'],
    [13, 'a system error in the radio'],
    [99, 'status 99'],
  ])('with the ubus status %d has words of its own', (code, words) => {
    const [answer] = answersIn(reply({ result: [code] }), 1);
    expect(answer).toEqual({ kind: 'status', code });
    expect(answer && answerWords(answer)).toBe(words);
  });

  it('is one for each call in order, whatever the radio writes', () => {
    forAll(fc.array(fc.jsonValue(), { minLength: 1, maxLength: 5 }), (replies) => {
      const answers = answersIn(JSON.stringify(replies), replies.length);
      expect(answers).toHaveLength(replies.length);
      for (const answer of answers) expect(answerWords(answer)).toMatch(/\S/u);
    });
  });

  it('is an outage where there are more or fewer answers than calls', () => {
    forAll(fc.array(fc.jsonValue(), { maxLength: 5 }), fc.integer({ min: 6, max: 9 }), (replies, count) => {
      expect(() => answersIn(JSON.stringify(replies), count)).toThrow(DeviceUnreachable);
    });
  });

  it('is an outage when it is no JSON at all', () => {
    forAll(fc.string(), (text) => {
      expect(() => answersIn(`<${text}`, 1)).toThrow(DeviceUnreachable);
      expect(() => listIn(`<${text}`)).toThrow(DeviceUnreachable);
    });
  });

  it('to a list is names, or none', () => {
    expect(listIn(reply({ result: ['session', 'system'] }))).toEqual(['session', 'system']);
    forAll(fc.jsonValue(), (json) => {
      expect(listIn(JSON.stringify(json)).every((name) => typeof name === 'string')).toBe(true);
    });
  });
});

describe('a request on the wire', () => {
  const call = fc.record({ object: fc.string(), method: fc.string() });

  it('has four parameters in each call, the last an object, and no two equal ids', () => {
    const args = fc.option(fc.dictionary(fc.string(), fc.jsonValue()), { nil: undefined });
    const calls = fc.array(
      fc.tuple(call, args).map(([one, more]): Call => (more === undefined ? one : { ...one, args: more })),
      { minLength: 1, maxLength: 8 },
    );
    forAll(calls, fc.nat(), (asked, first_id) => {
      const json: unknown = JSON.parse(requestText(asked, 'a'.repeat(32), first_id));
      expect(Array.isArray(json)).toBe(asked.length > 1);
      const requests = [json].flat() as { id: number; params: unknown[] }[];
      expect(requests.map(({ id }) => id)).toEqual(asked.map((_each, index) => first_id + index));
      for (const [index, { params }] of requests.entries()) {
        const { object, method } = asked[index]!;
        expect(params.slice(0, 3)).toEqual(['a'.repeat(32), object, method]);
        expect(params).toHaveLength(4);
        expect(params[3]).toBeTypeOf('object');
      }
    });
  });

  it('is refused before it is sent when it is too long for the web server, and the radio continues', async () => {
    const radio = await radioOn();
    const ubus = ubusTo(radio);
    await ubus.open();
    const before = radio.requests;
    const data = 'x'.repeat(quick_limits.request_bytes_max);
    await expect(ubus.askOne({ object: 'file', method: 'write', args: { data } })).rejects.toThrow(
      CommandRefused,
    );
    expect(radio.requests).toBe(before);
    await expect(ubus.askOne(system)).resolves.toMatchObject({ kind: 'ok' });
  });
});

describe('the session', () => {
  it('is kept alive by being used, and is renewed once after it ended by time', async () => {
    const radio = await radioOn();
    const ubus = ubusTo(radio);
    for (let turn = 0; turn < 3; turn += 1) {
      await expect(ubus.askOne(system)).resolves.toMatchObject({ kind: 'ok' });
      radio.sessions.ahead_ms += 200_000;
    }
    expect(radio.sessions.logins).toBe(1);
    radio.sessions.ahead_ms += 200_000;
    await expect(ubus.ask([system, info])).resolves.toMatchObject([{ kind: 'ok' }, { kind: 'ok' }]);
    expect(radio.sessions.logins).toBe(2);
    expect(ubus.losses).toBe(1);
  });

  it.each([
    ['twice', 2, { kind: 'ok' }],
    ['each time', Infinity, { kind: 'failed', sentence: texts.session_taken }],
  ])('is renewed when another client ends it %s before it is used', async (_what, times, outcome) => {
    const radio = await radioOn();
    const { sessions } = radio;
    const login = sessions.login.bind(sessions);
    sessions.login = (args) => {
      const result = login(args);
      if (sessions.logins <= times) sessions.forgetAll();
      return result;
    };
    await expect(ubusTo(radio).askOne(system)).resolves.toMatchObject(outcome);
    expect(sessions.logins).toBe(Math.min(times + 1, 4));
  });

  it('is not renewed for a right that it lacks from its beginning on', async () => {
    const radio = await radioOn();
    const ubus = ubusTo(radio);
    const exec = { object: 'file', method: 'exec' };
    await expect(ubus.askOne(exec)).resolves.toEqual({ kind: 'denied' });
    expect(radio.sessions.logins).toBe(1);
    await expect(ubus.askOne(exec)).resolves.toEqual({ kind: 'denied' });
    expect(radio.sessions.logins).toBe(2);
  });

  it('is opened once for all who ask at the same time', async () => {
    const radio = await radioOn();
    const ubus = ubusTo(radio);
    await Promise.all([ubus.open(), ubus.askOne(system), ubus.askOne(info)]);
    expect(radio).toMatchObject({ sessions: { logins: 1 }, busiest: 1, connections: 1 });
  });

  it('whose file right is missing is not renewed', async () => {
    const radio = await radioOn();
    const ubus = ubusTo(radio);
    const shadow = { object: 'file', method: 'read', args: { path: '/etc/shadow' } };
    await expect(ubus.askOne(shadow)).resolves.toEqual({ kind: 'status', code: 6 });
    expect(radio.sessions.logins).toBe(1);
  });

  it.each([
    ['a wrong password', [6], DeviceRejected, /refuses user kit/u],
    ['a missing field', [2], DeviceUnreachable, /an invalid argument/u],
    ['a timeout', { code: -32_003, message: 'ubus request timed out' }, DeviceUnreachable, /a timeout/u],
    ['rpcd down', { code: -32_000, message: 'Object not found' }, DeviceUnreachable, /rpcd/u],
    ['no session in it', [0, { timeout: 300 }], DeviceUnreachable, /without a session/u],
    [
      'a session without rights',
      [0, { ubus_rpc_session: 'a'.repeat(32), acls: {} }],
      DeviceUnreachable,
      /ACL/u,
    ],
  ])('is not opened by a login that is answered with %s', async (_what, answer, kind, sentence) => {
    const radio = await radioOn();
    radio.answers.set('session login', answer);
    const error: unknown = await ubusTo(radio)
      .open()
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(kind);
    expect(String(error)).toMatch(sentence);
    expect(radio.count('session login')).toBe(1);
  });
});

describe('firmware without batches', () => {
  it('is asked one call after another, in order, and each call is carried out once', async () => {
    const radio = await radioOn();
    radio.mood = 'no batches';
    const ubus = ubusTo(radio);
    const calls = [system, info, { object: 'file', method: 'exec' }];
    await expect(ubus.ask(calls)).resolves.toMatchObject([
      { kind: 'ok' },
      { kind: 'ok' },
      { kind: 'denied' },
    ]);
    const before = radio.requests;
    await ubus.ask([system, info]);
    expect(radio.requests - before).toBe(2);
    expect(radio.count('system info')).toBe(2);
  });

  it('is logged in to again when it loses a session between two calls', async () => {
    const radio = await radioOn();
    radio.mood = 'no batches';
    const ubus = ubusTo(radio);
    await ubus.ask([system, info]);
    radio.sessions.forgetAll();
    await expect(ubus.ask([system, info])).resolves.toMatchObject([{ kind: 'ok' }, { kind: 'ok' }]);
    expect(radio.sessions.logins).toBe(2);
  });
});

const row = (oid: string): snmp.Varbind => ({ oid, type: snmp.ObjectType.Integer, value: 1 });

describe('a walk over a table', () => {
  it('ends when the rows of the agent go round in circles', async () => {
    let asked = 0;
    const rows = await walk('1.3', 1_000, async (from) => {
      asked += 1;
      return [row(from === '1.3.1' ? '1.3.2' : '1.3.1')];
    });
    expect([...rows.keys()]).toEqual(['1', '2']);
    expect(asked).toBe(3);
  });

  it('ends at the limit, below the table, and with an empty answer', async () => {
    let next = 0;
    const endless = await walk('1.3', 50, async () => [row(`1.3.${(next += 1)}`)]);
    expect(endless.size).toBe(50);
    expect((await walk('1.3', 50, async () => [row('1.4.1')])).size).toBe(0);
    expect((await walk('1.3', 50, async () => [])).size).toBe(0);
  });

  it('leaves out a counter that is longer than 64 bits', async () => {
    const value = Buffer.alloc(60_000, 0xff);
    const long: snmp.Varbind = { oid: '1.3.1', type: snmp.ObjectType.Counter64, value };
    const rows = await walk('1.3', 50, async (from) => (from === '1.3' ? [long, row('1.3.2')] : []));
    expect(rows.get('1')).not.toBeTypeOf('number');
    expect(rows.get('2')).toBe(1);
  });
});
