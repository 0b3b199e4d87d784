/** The order of several brokers, on a clock of the test. */
import { describe, expect, it } from 'vitest';
import { isWithin, serversIn } from '../../../../src/mqtt/server-reference.ts';
import {
  BrokerChoice,
  first_again_ms,
  next_after_ms,
  works_after_ms,
} from '../../../../src/kit/uplink/broker-choice.ts';
import { brokerOptions } from '../../../support/brokers/broker-options.ts';

const plain = { code: undefined, server_reference: undefined } as const;
const another = (server_reference?: string) => ({ code: 0x9c, server_reference });
const moved = (server_reference: string) => ({ code: 0x9d, server_reference });

function lab(hosts: readonly string[], redirect_to: readonly string[] = []) {
  const world = { now_ms: 0, changed_ms: null as number | null };
  const sentences = new Map<string, string>();
  const choice = new BrokerChoice({
    brokers: hosts.map((host) => brokerOptions(`mqtts://${host}:8883`, { tls_name: 'cert.example' })),
    redirect_to,
    now: () => world.now_ms,
    routeChanged_ms: () => world.changed_ms,
    problems: {
      note: (kind, { sentence }) => void sentences.set(kind, sentence),
      clear: (...kinds) => kinds.forEach((kind) => sentences.delete(kind)),
    },
    log: { info: () => undefined },
  });
  const host = (): string => new URL(choice.current.url).hostname;
  /** Attempts as the loop makes them, until the next pause. */
  const round = (end: Parameters<BrokerChoice['failed']>[1] = plain): readonly string[] => {
    const tried: string[] = [];
    for (let next = 'at_once'; next === 'at_once' && tried.length < 20;) {
      choice.next();
      tried.push(host());
      next = choice.failed('refused', end);
    }
    return tried;
  };
  const pass = (ms: number): void => void (world.now_ms += ms);
  return { world, choice, sentences, host, round, pass };
}

describe('several brokers', () => {
  it('are tried in order once none has worked for a minute, each once before a pause', () => {
    const { choice, round, pass } = lab(['a.example', 'b.example', 'c.example']);
    expect(round()).toEqual(['a.example']);
    expect(choice.untilNext_ms).toBe(next_after_ms);
    pass(next_after_ms - 1);
    expect(round()).toEqual(['a.example']);
    pass(1);
    expect(round()).toEqual(['b.example', 'c.example', 'a.example']);
    expect(choice.untilNext_ms).toBe(Infinity);
    expect(round()).toEqual(['b.example', 'c.example', 'a.example']);
  });

  it('do not trap the kit at one that accepts each connection and ends it', () => {
    const { choice, host, pass } = lab(['a.example', 'b.example']);
    for (let n = 0; n < 8; n += 1) {
      choice.next();
      expect(host()).toBe('a.example');
      choice.connected();
      pass(8_000);
      choice.ended(8_000, 'closed', plain);
    }
    choice.next();
    expect(host()).toBe('b.example');
  });

  it('keep one that works, which has its own minute after each end', () => {
    const { choice, host, round, pass, sentences } = lab(['a.example', 'b.example']);
    round();
    pass(next_after_ms);
    choice.next();
    choice.connected();
    expect(sentences.get('other_broker')).toMatch(/a\.example:8883 did not work \(refused\).*b\.example/u);
    pass(works_after_ms);
    expect(choice.ended(works_after_ms, 'closed', plain)).toBe('later');
    choice.next();
    expect(host()).toBe('b.example');
    expect(round()).toEqual(['b.example']);
  });

  it('begin with the first after the network has changed', () => {
    const { world, round, pass } = lab(['a.example', 'b.example']);
    round();
    pass(next_after_ms);
    round();
    pass(3_600_000);
    world.changed_ms = world.now_ms - 1;
    expect(round()).toEqual(['a.example']);
    expect(round()).toEqual(['a.example']);
  });

  it('are left for the first, tried less often each time that it does not work after all', () => {
    const { choice, host, round, pass, sentences } = lab(['a.example', 'b.example']);
    round();
    pass(next_after_ms);
    for (const wait_ms of [first_again_ms, 2 * first_again_ms, 4 * first_again_ms]) {
      choice.next();
      expect(host()).toBe('b.example');
      choice.connected();
      pass(wait_ms - 1);
      expect(choice.isFirstDue).toBe(false);
      pass(1);
      expect(choice.isFirstDue).toBe(true);
      choice.firstTried();
      choice.backToFirst();
      choice.next();
      expect(host()).toBe('a.example');
      // It does not work: no minute is lost again.
      expect(choice.failed('refused', plain)).toBe('at_once');
    }
    choice.backToFirst();
    choice.next();
    choice.connected();
    expect(sentences.has('other_broker')).toBe(false);
    pass(works_after_ms);
    choice.ended(works_after_ms, 'closed', plain);
    expect(choice.isFirstDue).toBe(false);
  });

  it('are used when one sends the kit away without naming another', () => {
    const { round } = lab(['a.example', 'b.example']);
    expect(round(another())).toEqual(['a.example', 'b.example']);
  });
});

describe('a broker that names another server', () => {
  it('is followed within its domain, with the name of the other one in TLS, for one connection', () => {
    const { choice, host, pass } = lab(['a.fleet.example']);
    choice.next();
    expect(choice.failed('use another server', another('x.example b.fleet.example:9999'))).toBe('at_once');
    choice.next();
    expect(choice.current).toMatchObject({ url: 'mqtts://b.fleet.example:9999', tls_name: undefined });
    choice.connected();
    pass(works_after_ms);
    choice.ended(works_after_ms, 'closed', plain);
    choice.next();
    expect(host()).toBe('a.fleet.example');
  });

  it('for good is left for it, until it does not work for a minute', () => {
    const { choice, pass, round, sentences } = lab(['a.fleet.example']);
    choice.next();
    choice.failed('server moved', moved('b.fleet.example'));
    choice.next();
    choice.connected();
    expect(sentences.get('moved')).toContain('set broker.url');
    pass(works_after_ms);
    choice.ended(works_after_ms, 'closed', plain);
    expect(round()).toEqual(['b.fleet.example']);
    pass(next_after_ms);
    expect(round()).toEqual(['a.fleet.example']);
  });

  it('outside of it is named', () => {
    const { round, sentences } = lab(['a.fleet.example']);
    expect(round(another('evil.example'))).toEqual(['a.fleet.example']);
    expect(sentences.get('redirect')).toMatch(/sends the kit on to evil\.example.*broker\.redirect_to/u);
  });

  it('in circles is named', () => {
    const { choice, sentences } = lab(['a.fleet.example']);
    const names = ['b.fleet.example', 'a.fleet.example'];
    choice.next();
    expect(choice.failed('', another(names[0]))).toBe('at_once');
    choice.next();
    expect(choice.failed('', another(names[1]))).toBe('later');
    expect(sentences.get('redirect')).toContain('before');
  });

  it('again and again is followed three times', () => {
    const { choice, round } = lab(['a.fleet.example']);
    let n = 0;
    choice.next();
    while (choice.failed('', another(`n${(n += 1)}.fleet.example`)) === 'at_once') choice.next();
    expect(n).toBe(4);
    expect(round()).toEqual(['a.fleet.example']);
  });
});

describe('a Server Reference', () => {
  it.each([
    ['b.example', ['mqtts://b.example:8883']],
    [
      'b.example:443 [fe80::1]:1883 10.1.2.3',
      ['mqtts://b.example:443', 'mqtts://[fe80::1]:1883', 'mqtts://10.1.2.3:8883'],
    ],
    ['mqtts://b.example:1', ['mqtts://b.example:1']],
    ['mqtt://b.example:1883', []],
    ['user@b.example', []],
    ['::', []],
  ])('%j names servers of the same scheme', (reference, servers) => {
    expect(serversIn(reference, 'mqtts://a.example:8883')).toEqual(servers);
  });

  it('keeps the path of WebSocket', () => {
    expect(serversIn('b.example', 'wss://a.example:443/mqtt?x=1')).toEqual(['wss://b.example:443/mqtt?x=1']);
  });

  it.each([
    ['a.fleet.example', 'b.fleet.example', true],
    ['a.fleet.example', 'fleet.example', true],
    ['a.fleet.example', 'x.b.fleet.example', true],
    ['a.fleet.example', 'evilfleet.example', false],
    ['fleet.example', 'eu.fleet.example', true],
    ['fleet.example', 'other.example', false],
    ['fleet.co.uk', 'other.co.uk', false],
    ['fleet.com.au', 'other.com.au', false],
    ['mq.fleet.co.uk', 'b.fleet.co.uk', true],
    ['10.0.0.5', '10.0.0.5', true],
    ['10.0.0.5', '10.0.0.6', false],
    ['127.0.0.1', 'localhost', true],
    ['localhost', '127.0.0.1.evil.example', false],
    ['one.s1.eu.hivemq.cloud', 'two.s1.eu.hivemq.cloud', false],
    ['one.s1.eu.hivemq.cloud', 'one.s1.eu.hivemq.cloud', true],
    ['x-ats.iot.eu-central-1.amazonaws.com', 'y-ats.iot.eu-central-1.amazonaws.com', false],
    ['a.fleet.example', 'b.allowed.test', true],
  ])('of %s to %s: %s', (from, to, isAllowed) => {
    const brokers = [{ url: `mqtts://${from}:8883` }];
    expect(isWithin(`mqtts://${to}:443`, brokers, ['allowed.test'])).toBe(isAllowed);
  });
});
