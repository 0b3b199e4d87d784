import { hostname, networkInterfaces } from 'node:os';
import { describe, expect, it } from 'vitest';
import { isOwnHost } from '../../../../src/toolkit/device/own-host.ts';

describe('isOwnHost', () => {
  it.each([
    '127.0.0.1',
    '127.8.9.1',
    '127.1',
    '2130706433',
    '0x7f.1',
    '0.0.0.0',
    '::1',
    '::',
    '::ffff:127.0.0.1',
  ])('is true for the loopback as %s', (host) => {
    expect(isOwnHost(host)).toBe(true);
  });

  it.each(['localhost', 'LocalHost.', 'x.localhost', hostname(), `${hostname().toUpperCase()}.local`])(
    'is true for the name %s',
    (host) => {
      expect(isOwnHost(host)).toBe(true);
    },
  );

  it.each(['10.0.0.5', 'fd00::5', 'fe80::1%eth0', 'camera.lan', 'notlocalhost', '1270.0.0.1', ''])(
    'is false for %j',
    (host) => {
      expect(isOwnHost(host)).toBe(false);
    },
  );

  it('is true for each address of this machine', () => {
    const own = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
    expect(own.filter(({ address }) => !isOwnHost(address))).toEqual([]);
  });
});
