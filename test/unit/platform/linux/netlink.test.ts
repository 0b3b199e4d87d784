/** Listings of the kernel's tables over netlink, on this machine. */
import { expect, it, describe } from 'vitest';
import { DeviceUnreachable } from '../../../../src/platform/errors.ts';
import { dumpTable, readAttributes } from '../../../../src/platform/linux/netlink.ts';
import { kernelRoutes } from '../../../../src/platform/linux/route-lookup.ts';

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

describe('the route lookup', () => {
  it('returns interface and source of a destination of this machine', async () => {
    await expect(kernelRoutes.find({ ip: '127.0.0.1' })).resolves.toEqual({
      ifindex: 1,
      interface: 'lo',
      source_ip: '127.0.0.1',
    });
    const withSource = await kernelRoutes.find({ ip: '127.0.0.1', source_ip: '127.0.0.5' });
    expect(withSource).toMatchObject({ interface: 'lo' });
  });

  it('returns null for a source that the machine does not have, and for what is no address', async () => {
    await expect(kernelRoutes.find({ ip: '127.0.0.1', source_ip: '203.0.113.77' })).resolves.toBeNull();
    await expect(kernelRoutes.find({ ip: 'broker.example' })).resolves.toBeNull();
  });

  it('watches until its signal aborts', async () => {
    const end = new AbortController();
    await kernelRoutes.watch(() => undefined, end.signal);
    end.abort();
    await expect(kernelRoutes.watch(() => undefined, end.signal)).rejects.toThrow(/abort/u);
  });
});
