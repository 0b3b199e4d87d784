/** Addresses of both families, and networks of one that are none of the other. */
import { expect, it } from 'vitest';
import { Networks, plainIp } from '../../../src/platform/networks.ts';

it('takes no address of one family for one of the other', () => {
  const all_v4 = new Networks(['0.0.0.0/0']);
  const mapped = new Networks(['::ffff:0:0/96']);
  expect(['192.0.2.7', '::ffff:192.0.2.7', '::1'].map((each) => all_v4.has(each))).toEqual([
    true,
    false,
    false,
  ]);
  expect(['192.0.2.7', '::ffff:192.0.2.7', '::1'].map((each) => mapped.has(each))).toEqual([
    false,
    true,
    false,
  ]);
  expect(['', 'localhost', '192.0.2.7/32', '192.0.2.07'].map((each) => all_v4.has(each))).toEqual([
    false,
    false,
    false,
    false,
  ]);
});

it('reads an address without the prefix of a socket of IPv6, and no other address as one of IPv4', () => {
  expect(['::ffff:192.0.2.7', '::FFFF:192.0.2.7', '192.0.2.7'].map(plainIp)).toEqual(
    Array<string>(3).fill('192.0.2.7'),
  );
  const others = ['::ffff:c000:207', '2001:db8::ffff:192.0.2.7', '::1'];
  expect(others.map(plainIp)).toEqual(others);
});
