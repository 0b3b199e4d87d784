import { describe, expect, it } from 'vitest';
import { kernelRoutes } from '../../../../src/platform/linux/route-lookup.ts';

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
