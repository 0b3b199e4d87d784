/** The status of one link, its reason, its throughput and its addresses. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  isConfigured,
  ownPublicAddress,
  beganAt,
  judge,
  type LinkFacts,
} from '../../../../drivers/links/status.ts';
import type { InterfaceState } from '../../../../drivers/links/interfaces/sysfs.ts';
import { texts } from '../../../../drivers/links/texts.ts';
import { ratesBetween } from '../../../../drivers/links/usage/usage.ts';
import { forAll } from '../../../support/for-all.ts';

const state: InterfaceState = {
  hasMaster: false,
  lowers: [],
  isUp: true,
  carrier: true,
  operstate: 'up',
  rx_bytes: 0,
  tx_bytes: 0,
  mtu: 1_500,
  speed_bps: undefined,
};
const signs: LinkFacts = {
  state,
  addresses: ['10.0.0.2'],
  isRouted: true,
  isSelected: true,
  isBelowTunnel: false,
  traffic: 'carried',
  isRefused: false,
  reachable: true,
  asked: ['198.51.100.1', '198.51.100.2'],
  missing: [],
  probe_reason: null,
  decided_by: 'probes',
};
const judged = (more: Partial<LinkFacts>) => {
  const { status, reason } = judge({ ...signs, ...more });
  return { status, reason };
};

describe('the status of a link', () => {
  it('is online when it answers and is selected, standby when it answers and is not', () => {
    expect(judged({})).toEqual({ status: 'online', reason: null });
    expect(judged({ isSelected: false })).toEqual({
      status: 'standby',
      reason: texts.other_link_selected,
    });
  });

  it.each<readonly [string, Partial<LinkFacts>]>([
    [texts.interface_missing, { state: null }],
    [texts.interface_down, { state: { ...state, isUp: false, carrier: undefined } }],
    [texts.no_carrier, { state: { ...state, carrier: false, operstate: 'down' } }],
    [texts.no_carrier, { state: { ...state, carrier: undefined } }],
    ['not connected (dormant)', { state: { ...state, operstate: 'dormant' } }],
    [texts.no_address, { addresses: [] }],
    [texts.no_address, { addresses: ['169.254.3.4', 'fe80::1'] }],
    ['no answer; probed 198.51.100.1, 198.51.100.2', { reachable: false, probe_reason: 'no answer' }],
    [
      `no answer; probed 2001:db8::1; ${texts.family_missing('IPv4')}`,
      { asked: ['2001:db8::1'], missing: [4], reachable: false, probe_reason: 'no answer' },
    ],
    [
      'http://198.51.100.1/ answered 302',
      { reachable: false, probe_reason: 'http://198.51.100.1/ answered 302', decided_by: 'checks' },
    ],
    [texts.no_default_route, { isRouted: false, asked: [], reachable: null }],
    [texts.no_default_route, { isRouted: false, isSelected: false, traffic: 'unrouted' }],
    [texts.no_default_route, { isRouted: false, reachable: false, probe_reason: 'no answer' }],
    [texts.traffic_refused, { isSelected: false, traffic: 'refused' }],
    [
      texts.traffic_refused,
      { isSelected: false, traffic: 'refused', reachable: false, probe_reason: 'no answer' },
    ],
    [texts.traffic_refused, { isRefused: true, reachable: false, probe_reason: 'no answer' }],
  ])('is offline, with the reason: %s', (reason, more) => {
    expect(judged(more)).toEqual({ status: 'offline', reason });
  });

  it.each<readonly [string | undefined, Partial<LinkFacts>]>([
    [undefined, {}],
    [undefined, { isSelected: false }],
    ['removed', { state: null }],
    ['switched_off', { state: { ...state, isUp: false, carrier: undefined } }],
    ['no_carrier', { state: { ...state, carrier: false } }],
    ['not_connected', { state: { ...state, operstate: 'dormant' } }],
    ['no_address', { addresses: [] }],
    ['no_answer', { reachable: false }],
    ['wrong_answer', { reachable: false, decided_by: 'checks' }],
    ['no_route', { isRouted: false, asked: [], reachable: null }],
    ['no_route', { isRouted: false, reachable: false }],
    ['no_route', { isSelected: false, traffic: 'refused' }],
  ])('has the cause %s', (cause, more) => {
    expect(judge({ ...signs, ...more }).cause).toBe(cause);
  });

  it('names another link only where another link carries the traffic', () => {
    expect(judged({ isSelected: false, traffic: 'unrouted' })).toEqual({
      status: 'standby',
      reason: texts.marked_traffic_only,
    });
  });

  it('is not known before the first verdict of the probes', () => {
    expect(judged({ reachable: null })).toEqual({
      status: undefined,
      reason: texts.first_probes,
    });
  });

  it('is not judged by its own answers while it carries a tunnel with all of the traffic', () => {
    const below = { isBelowTunnel: true, reachable: null };
    expect(judged(below)).toEqual({ status: 'online', reason: texts.below_tunnel });
    expect(judged({ isBelowTunnel: true })).toEqual({ status: 'online', reason: null });
    expect(judged({ ...below, state: { ...state, carrier: false } })).toMatchObject({ status: 'offline' });
  });

  it('assumes answers without probe targets, and states it', () => {
    expect(judged({ reachable: null, asked: [] })).toEqual({ status: 'online', reason: texts.not_probed });
  });

  it('treats the unknown state of a modem as up, and an answer as better evidence than the tables', () => {
    expect(judged({ state: { ...state, operstate: 'unknown' } }).status).toBe('online');
    expect(judged({ isRouted: false, isSelected: false }).status).toBe('standby');
  });

  it('is never online or standby without a carrier, and never without a reason unless it is online', () => {
    const any = fc.record({
      state: fc.record({
        hasMaster: fc.boolean(),
        lowers: fc.constant([]),
        isUp: fc.boolean(),
        carrier: fc.option(fc.boolean(), { nil: undefined }),
        operstate: fc.constantFrom('up', 'down', 'unknown', 'dormant'),
        rx_bytes: fc.nat(),
        tx_bytes: fc.nat(),
        mtu: fc.constant(undefined),
        speed_bps: fc.constant(undefined),
      }),
      addresses: fc.option(fc.subarray(['10.0.0.2', 'fe80::1'])),
      isRouted: fc.boolean(),
      isSelected: fc.boolean(),
      isBelowTunnel: fc.boolean(),
      traffic: fc.constantFrom('carried', 'refused', 'unrouted'),
      isRefused: fc.boolean(),
      asked: fc.constantFrom([], ['198.51.100.1', '198.51.100.2']),
      missing: fc.subarray<4 | 6>([4, 6]),
      reachable: fc.option(fc.boolean()),
      probe_reason: fc.constantFrom(null, 'no answer'),
      decided_by: fc.constantFrom('probes', 'checks'),
    });
    forAll(any, (sign) => {
      const { status, reason } = judge(sign);
      const isRight = sign.state.carrier === true || status === 'offline';
      expect(isRight && (status === 'online' || reason !== null)).toBe(true);
    });
  });
});

describe('throughput', () => {
  const at = (mono_ms: number, rx_bytes: number, tx_bytes = 0, ifindex = 2) => ({
    mono_ms,
    rx_bytes,
    tx_bytes,
    ifindex,
  });

  it('is the difference of two readings over the monotonic time between them', () => {
    expect(ratesBetween(at(0, 1_000), at(2_000, 126_000, 250), undefined)).toEqual({
      rx_bps: 500_000,
      tx_bps: 1_000,
    });
  });

  it('is unknown at first, for a new interface, after a counter reset, and without time between', () => {
    const unknown = { rx_bps: null, tx_bps: null };
    expect(ratesBetween(undefined, at(0, 5), undefined)).toEqual(unknown);
    expect(ratesBetween(at(0, 5), at(1_000, 9, 0, 7), undefined)).toEqual(unknown);
    expect(ratesBetween(at(0, 5), at(0, 9), undefined)).toEqual(unknown);
    expect(ratesBetween(at(0, 5), at(1_000, 1), undefined)).toEqual({ rx_bps: null, tx_bps: 0 });
  });

  it('is unknown where the counters exceed what the link can carry', () => {
    expect(ratesBetween(at(0, 0), at(1_000, 20e6), 100e6).rx_bps).toBeNull();
    expect(ratesBetween(at(0, 0), at(1_000, 12e6), 100e6).rx_bps).toBe(96e6);
  });
});

it.each([
  [['192.168.1.2', '8.8.4.4'], '8.8.4.4'],
  [['10.1.2.3'], null],
  [['172.31.0.1'], null],
  [['172.32.0.1'], '172.32.0.1'],
  [['100.64.0.1'], null],
  [['100.128.0.1'], '100.128.0.1'],
  [['169.254.1.1', 'fe80::1', 'fd00::1', '2001:db8::1'], null],
  [['203.0.113.9', '192.0.2.2'], null],
  [['2a00:1450::1', '8.8.4.4'], '8.8.4.4'],
  [['10.0.0.2', '2a00:1450::1'], '2a00:1450::1'],
  [['240.0.0.1', '224.0.0.1'], null],
])('of %j the public address is %s', (addresses, expected) => {
  expect(ownPublicAddress(addresses)).toBe(expected);
});

it('takes an interface without addresses as not configured', () => {
  expect(isConfigured([])).toBe(false);
  expect(isConfigured(['fe80::1', '2001:4860::1'])).toBe(true);
});

describe('the time from which a status counts', () => {
  const at = { before_ms: 1_000, now_ms: 9_000 };
  it('is that of the last answer and of the first, where answers decide', () => {
    expect(beganAt(4_000, 'no_answer', at)).toBe(4_000);
    expect(beganAt(4_000, 'wrong_answer', { ...at, before_ms: undefined })).toBe(4_000);
  });

  it('is that of the reading where they do not, or are not known, or are older than the status before', () => {
    expect(beganAt(4_000, 'no_carrier', at)).toBe(9_000);
    expect(beganAt(4_000, undefined, at)).toBe(9_000);
    expect(beganAt(null, 'no_answer', at)).toBe(9_000);
    expect(beganAt(500, 'no_answer', at)).toBe(9_000);
  });
});
