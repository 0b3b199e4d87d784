/** Bytes of the kernel's rtnetlink, as they come and as they never should. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  decodeAddress,
  decodeDefaultRoute,
  decodeHostRoute,
  decodeRule,
} from '../../../../drivers/links/routes/rtnetlink.ts';
import { readAttributes, readMessages, uint32 } from '../../../../src/platform/linux/netlink.ts';
import { forAll } from '../../../support/for-all.ts';

const u32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value >>> 0);
  return bytes;
};
const attribute = (type: number, value: Buffer): Buffer => {
  const padded = Buffer.alloc(4 + ((value.length + 3) & ~3));
  padded.writeUInt16LE(4 + value.length, 0);
  padded.writeUInt16LE(type, 2);
  value.copy(padded, 4);
  return padded;
};
const route = (header: readonly number[], ...attributes: readonly Buffer[]): Buffer =>
  Buffer.concat([Buffer.from(header), ...attributes]);
/** family, destination bits, source bits, tos, table, protocol, scope, type, flags. */
const unicast = [2, 0, 0, 0, 254, 3, 0, 1, 0, 0, 0, 0];
const rule = (flags: number, ...attributes: readonly Buffer[]): Buffer =>
  route([2, 0, 0, 0, 100, 0, 0, 1, flags, 0, 0, 0], attribute(6, u32(50)), ...attributes);

describe('a route to one host', () => {
  const router = attribute(5, Buffer.from([10, 0, 0, 1]));
  it('names its interface where a router stands between, and only there', () => {
    const host = [2, 32, 0, 0, 254, 3, 0, 1, 0, 0, 0, 0];
    expect(decodeHostRoute(route(host, attribute(4, u32(3)), router))).toBe(3);
    expect(decodeHostRoute(route([10, 128, ...host.slice(2)], attribute(4, u32(4)), router))).toBe(4);
    expect(decodeHostRoute(route(host, attribute(4, u32(3))))).toBeUndefined();
    expect(decodeHostRoute(route([2, 24, ...host.slice(2)], attribute(4, u32(3)), router))).toBeUndefined();
    expect(decodeHostRoute(route([10, ...host.slice(1)], attribute(4, u32(3)), router))).toBeUndefined();
  });
});

describe('a default route', () => {
  it('has a path, a metric and a table of 32 bits', () => {
    const body = route(unicast, attribute(4, u32(3)), attribute(6, u32(700)), attribute(15, u32(51_820)));
    expect(decodeDefaultRoute(body)).toEqual({
      family: 4,
      table: 51_820,
      metric: 700,
      paths: [{ ifindex: 3, weight: 1, alive: true }],
    });
  });

  it('has several paths with their weights, and marks the one that the kernel ignores', () => {
    const hop = (ifindex: number, flags: number, more: number): Buffer =>
      Buffer.concat([Buffer.from([8, 0, flags, more]), u32(ifindex)]);
    const body = route(unicast, attribute(9, Buffer.concat([hop(3, 0, 2), hop(4, 1, 0)])));
    expect(decodeDefaultRoute(body)?.paths).toEqual([
      { ifindex: 3, weight: 3, alive: true },
      { ifindex: 4, weight: 1, alive: false },
    ]);
  });

  it.each([
    ['to a network', [2, 24, 0, 0, 254, 3, 0, 1, 0, 0, 0, 0]],
    ['from a network', [2, 0, 24, 0, 254, 3, 0, 1, 0, 0, 0, 0]],
    ['of the local table', [2, 0, 0, 0, 255, 3, 0, 1, 0, 0, 0, 0]],
    ['of the cache', [10, 0, 0, 0, 254, 3, 0, 1, 0, 2, 0, 0]],
    ['of another family', [28, 0, 0, 0, 254, 3, 0, 1, 0, 0, 0, 0]],
    ['of multicast', [2, 0, 0, 0, 254, 3, 0, 5, 0, 0, 0, 0]],
  ])('is none that is a route %s', (_, header) => {
    expect(decodeDefaultRoute(route(header, attribute(4, u32(3))))).toBeUndefined();
  });

  it('counts for IPv6 with a source prefix too, as OpenWrt sets it, unless it rejects traffic', () => {
    const ofPrefix = [10, 0, 56, 0, 254, 3, 0, 1, 0, 0, 0, 0];
    expect(decodeDefaultRoute(route(ofPrefix, attribute(4, u32(3))))).toMatchObject({
      family: 6,
      paths: [{ ifindex: 3 }],
    });
    expect(decodeDefaultRoute(route(ofPrefix.with(7, 7)))).toBeUndefined();
  });

  it('has no path when it rejects traffic', () => {
    expect(decodeDefaultRoute(route([2, 0, 0, 0, 254, 3, 0, 7, 0, 0, 0, 0]))).toMatchObject({ paths: [] });
  });
});

describe('a rule', () => {
  it.each([
    ['all traffic', 0, [], 'all'],
    ['marked traffic', 0, [attribute(10, u32(0x100))], 'marked'],
    ['what nobody marked', 2, [attribute(10, u32(51_820))], 'all'],
    ['one interface', 0, [attribute(3, Buffer.from('lan\0'))], 'some'],
    ['one user', 0, [attribute(20, Buffer.alloc(8))], 'some'],
    ['nothing', 2, [], 'some'],
  ])('for %s', (_, flags, attributes, matches) => {
    expect(decodeRule(rule(flags, ...attributes))).toMatchObject({ priority: 50, table: 100, matches });
  });

  it.each([6, 7, 8])('of action %i refuses, and looks into no table', (action) => {
    const refusal = rule(0);
    refusal.writeUInt8(action, 7);
    expect(decodeRule(refusal)).toMatchObject({ priority: 50, table: null, matches: 'all' });
    refusal.writeUInt8(3, 7);
    expect(decodeRule(refusal)).toBeUndefined();
  });

  it('states whether default routes of its table count', () => {
    expect(decodeRule(rule(0, attribute(14, u32(0))))?.skips_defaults).toBe(true);
    expect(decodeRule(rule(0, attribute(14, u32(0xff_ff_ff_ff))))?.skips_defaults).toBe(false);
  });
});

describe('an address', () => {
  const header = (family: number, flags = 0): number[] => [family, 24, flags, 0, 7, 0, 0, 0];

  it('is the own end of a point-to-point link', () => {
    const body = route(
      header(2),
      attribute(1, Buffer.from([10, 0, 0, 1])),
      attribute(2, Buffer.from([10, 0, 0, 2])),
    );
    expect(decodeAddress(body)).toEqual({ ifindex: 7, address: '10.0.0.2' });
  });

  it('of IPv6 counts once the kernel uses it', () => {
    const bytes = Buffer.from('20010db8000000000000000000000002', 'hex');
    expect(decodeAddress(route(header(10), attribute(1, bytes)))?.address).toBe('2001:db8::2');
    expect(decodeAddress(route(header(10, 0x40), attribute(1, bytes)))).toBeUndefined();
  });
});

it('reads any bytes without an error, and nothing beyond their end', () => {
  forAll(fc.uint8Array({ maxLength: 200 }), (bytes) => {
    const data = Buffer.from(bytes);
    const messages = readMessages(data);
    const bodies = [data, ...messages.map(({ body }) => body)];
    for (const body of bodies) {
      decodeAddress(body);
      decodeDefaultRoute(body);
      decodeRule(body);
    }
    const total = messages.reduce((sum, { body }) => sum + body.length + 16, 0);
    expect(total).toBeLessThanOrEqual(data.length);
  });
});

it('leaves out an attribute that is cut off', () => {
  const whole = attribute(6, u32(700));
  expect(uint32(readAttributes(whole, 0), 6)).toBe(700);
  expect(uint32(readAttributes(whole.subarray(0, 6), 0), 6)).toBeUndefined();
});
