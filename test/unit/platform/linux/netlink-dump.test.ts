/** Listings of the kernel's tables over netlink, on this machine. */
import { expect, it } from 'vitest';
import { DeviceUnreachable } from '../../../../src/platform/errors.ts';
import { dumpTable } from '../../../../src/platform/linux/netlink-dump.ts';
import { readAttributes } from '../../../../src/platform/linux/netlink-message.ts';

const addresses = { of: 'addresses', ask: 22, answer: 20, header_bytes: 8 };
const ifa_address = 1;

it('lists the loopback address among the addresses, any number of times at once', async () => {
  const listings = await Promise.all([addresses, addresses, addresses].map(dumpTable));
  for (const bodies of listings) {
    const own = bodies.map((body) => readAttributes(body, 8).get(ifa_address)?.join('.'));
    expect(own).toContain('127.0.0.1');
  }
});

it('names the table that the kernel refuses to list', async () => {
  const unknown = { of: 'unicorns', ask: 3_000, answer: 3_001, header_bytes: 12 };
  const refusal: unknown = await dumpTable(unknown).catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(DeviceUnreachable);
  expect(String(refusal)).toMatch(/does not list its unicorns|refuses to list its unicorns: error \d+/u);
});
