import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { readGrants } from '../../../../drivers/vendorradio/ubus/ubus.ts';
import { vendorradio } from '../../../../drivers/vendorradio/vendorradio.ts';

const readme = readFileSync(new URL('../../../../drivers/vendorradio/README.md', import.meta.url), 'utf8');
const block = (kind: string): string =>
  new RegExp(`\`\`\`${kind}\\n([^]*?)\`\`\``, 'u').exec(readme)?.[1] ?? '';
const snmp = { kind: 'snmp', name: 'bridge', host: '10.0.0.1' };
const ubus = { kind: 'ubus', name: 'mast', host: '10.0.0.2', password_file: '/p' };
const configure = (...radios: readonly object[]) => vendorradio.configure({ radios });

describe('the options', () => {
  it.each([
    ['an address with a scheme', [{ ...ubus, host: 'http://10.0.0.2' }], /without a scheme/u],
    ['SNMP v2c without a community', [{ ...snmp, version: '2c' }], /community_file/u],
    ['SNMP v1 without a community', [{ ...snmp, version: 1 }], /community_file/u],
    ['SNMP v3 without a user', [snmp], /username/u],
    [
      'encryption without authentication',
      [{ ...snmp, username: 'u', priv_password_file: '/p' }],
      /auth_password_file/u,
    ],
    ['one name twice', [ubus, { ...ubus, host: '10.0.0.3' }], /unique name/u],
    ['one address twice', [ubus, { ...ubus, name: 'other' }], /list each radio once/u],
    ['an OID in words', [{ ...snmp, username: 'u', oids: { rssi: 'iso.org' } }], /oids/u],
    ['a figure that is unknown', [{ ...snmp, username: 'u', oids: { rsi: '1.3.6.1' } }], /rsi/u],
  ])('refuse %s', (_what, radios, sentence) => {
    expect(() => configure(...radios)).toThrow(sentence);
  });
});

it('the version of SNMP may be written as a number and as a text', () => {
  const one = { ...snmp, community_file: '/c' };
  for (const version of [1, '1', '2c']) expect(() => configure({ ...one, version })).not.toThrow();
  for (const version of [3, '3', undefined])
    expect(() => configure({ ...snmp, username: 'u', version })).not.toThrow();
  expect(() => configure({ ...one, version: 2 })).toThrow(/version/u);
});

it('the rights of the README cover every call, in the form in which a login tells them', () => {
  const acl = z
    .object({
      'kit-connector': z.object({
        read: z.object({
          ubus: z.record(z.string(), z.array(z.string())),
          file: z.record(z.string(), z.array(z.string())),
        }),
      }),
    })
    .parse(JSON.parse(block('json')))['kit-connector'];
  const grants = readGrants({ ...acl.read, uci: { wireless: ['read'] } });
  expect(grants.mayCall({ object: 'iwinfo', method: 'assoclist' })).toBe(true);
  expect(grants.mayFile('/sys/class/net/phy0-mesh0/address', 'read')).toBe(true);
  expect(grants.mayFile('/etc/shadow', 'read')).toBe(false);
  expect(grants.mayFile('/proc/stat', 'write')).toBe(false);
  expect(grants.mayUci('wireless', 'write')).toBe(false);
  expect(grants.mayCall({ object: 'file', method: 'exec' })).toBe(false);
});
