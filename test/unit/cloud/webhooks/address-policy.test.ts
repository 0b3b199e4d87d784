import { describe, expect, it } from 'vitest';
import { AddressPolicy } from '../../../../src/cloud/webhooks/address-policy.ts';

const strict = new AddressPolicy({ allow: [], allow_http: false });
const open = new AddressPolicy({ allow: ['10.20.0.0/16', '::1/128', 'fd00:1::/64'], allow_http: true });

describe('AddressPolicy', () => {
  it.each([
    '127.0.0.1',
    '10.20.1.1',
    '172.31.255.255',
    '192.168.1.1',
    '169.254.169.254',
    '100.64.0.1',
    '0.0.0.0',
    '224.0.0.1',
    '255.255.255.255',
    '198.18.0.1',
    '::1',
    '::',
    '::ffff:127.0.0.1',
    '::ffff:8.8.8.8',
    '64:ff9b::7f00:1',
    'fe80::1',
    'fd00:1::1',
    'ff02::1',
    '2001:db8::1',
    '2002:7f00:1::1',
    '2001:0:7f00:1::1',
  ])('does not reach %s', (address) => {
    expect(strict.reaches(address)).toBe(false);
  });

  it.each(['8.8.8.8', '172.32.0.1', '192.169.0.1', '2606:4700::1111', '2a00:1450:400a::200e'])(
    'reaches %s',
    (address) => {
      expect(strict.reaches(address)).toBe(true);
    },
  );

  it('reaches networks that the configuration allows, and no others', () => {
    expect(['10.20.255.1', '::1', 'fd00:1::7'].map((each) => open.reaches(each))).toEqual([true, true, true]);
    expect(['10.21.0.1', 'fd00:2::7', '127.0.0.1'].map((each) => open.reaches(each))).toEqual([
      false,
      false,
      false,
    ]);
  });

  it.each([
    ['http://app.example.com/', 'https'],
    ['ftp://app.example.com/', 'https'],
    ['https://user:secret@app.example.com/', 'password'],
    ['https://app.example.com/#x', 'fragment'],
    ['https://127.0.0.1/', 'private'],
    ['https://2130706433/', 'private'],
    ['https://0x7f.1/', 'private'],
    ['https://[::1]/', 'private'],
    ['https://[::ffff:10.0.0.1]/', 'private'],
    ['nonsense', 'address'],
    [`https://app.example.com/${'x'.repeat(3_000)}`, 'address'],
  ])('refuses %s', (url, reason) => {
    expect(strict.faultOf(url)).toContain(reason);
  });

  it('accepts names, which are resolved at each delivery', () => {
    expect(strict.faultOf('https://app.example.com:8443/hook?kit=7')).toBeUndefined();
    expect(open.faultOf('http://10.20.0.9/hook')).toBeUndefined();
  });
});
