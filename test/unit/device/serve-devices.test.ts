/** Several devices of one driver: what happens to one does not touch the others. */
import { describe, expect, it } from 'vitest';
import type { SessionState } from '../../../src/device/device-session.ts';
import { serveDevices } from '../../../src/device/serve-devices.ts';
import { DeviceRejected } from '../../../src/errors.ts';
import { aborted } from '../../../src/platform/time.ts';

type Tell = (state: SessionState) => void;

function start() {
  const stopping = new AbortController();
  const tell = new Map<string, Tell>();
  const ended: string[] = [];
  const done = serveDevices(
    [{ name: 'gate' }, { name: 'mast' }],
    stopping.signal,
    async (device, session) => {
      tell.set(device.name, session.onState);
      await aborted(session.signal);
      ended.push(device.name);
    },
  );
  done.catch(() => undefined);
  return { stopping, ended, done, say: (name: string, state: SessionState) => tell.get(name)?.(state) };
}

const rejected = (reason: string, options?: { readonly may_pass: boolean }): SessionState => ({
  state: 'rejected',
  reason,
  error: new DeviceRejected(reason, options),
  retry_ms: 1,
});

describe('serveDevices', () => {
  it('continues while one device of two rejects the connector', async () => {
    const { stopping, say, ended, done } = start();
    say('gate', rejected('wrong password'));
    say('mast', { state: 'up' });
    await Promise.resolve();
    expect(ended).toEqual([]);
    stopping.abort();
    await expect(done).resolves.toBeUndefined();
    expect(ended).toEqual(['gate', 'mast']);
  });

  it('ends with every reason when all devices reject the connector at the same time', async () => {
    const { say, ended, done } = start();
    say('gate', rejected('wrong password'));
    say('gate', { state: 'up' });
    say('mast', rejected('has another certificate'));
    expect(ended).toEqual([]);
    say('gate', rejected('locked the account'));
    await expect(done).rejects.toThrow(
      new DeviceRejected('mast has another certificate; gate locked the account'),
    );
    expect(ended).toEqual(['gate', 'mast']);
  });

  it('may pass as a whole when the rejection of one device may', async () => {
    const { say, done } = start();
    say('gate', rejected('wrong password'));
    say('mast', rejected('locked', { may_pass: true }));
    await expect(done).rejects.toMatchObject({ may_pass: true });
  });

  it('serves nothing when its signal has aborted before', async () => {
    const done = serveDevices([{ name: 'gate' }], AbortSignal.abort(), async (_device, { signal }) => {
      await aborted(signal);
    });
    await expect(done).resolves.toBeUndefined();
  });
});
