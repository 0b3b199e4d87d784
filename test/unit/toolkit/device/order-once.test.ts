/** Orders that may end what answers them, on a real message bus. */
import { once } from 'node:events';
import { afterEach, describe, expect, it } from 'vitest';
import { openBus, texts } from '../../../../src/toolkit/device/dbus/bus.ts';
import { orderOnce } from '../../../../src/toolkit/device/dbus/order-once.ts';
import { type FakeLogind, startFakeLogind } from '../../../fakes/services/fake-logind.ts';
import { makeMessageBus } from '../../../support/drivers/message-bus.ts';
import { peerMissing } from '../../../support/peers.ts';

const closing: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const order = {
  destination: 'org.freedesktop.login1',
  path: '/org/freedesktop/login1',
  interface: 'org.freedesktop.login1.Manager',
  member: 'Reboot',
  signature: 'b',
  body: [false],
};

describe.skipIf(peerMissing('dbus-daemon'))('orderOnce', () => {
  async function start(reboot: FakeLogind['reboot']) {
    const daemon = await makeMessageBus();
    closing.push(async () => daemon.stop());
    await daemon.start();
    const logind = await startFakeLogind(daemon.address, () => void daemon.kill());
    closing.push(() => logind.stop());
    logind.reboot = reboot;
    const ending = new AbortController();
    closing.push(() => ending.abort());
    const options = { address: daemon.address, timeout_ms: 2_000, signal: ending.signal };
    return { daemon, logind, bus: await openBus({ ...options, onSignal: () => undefined }) };
  }

  it('returns an answer or a refusal as it comes', async () => {
    const { bus, logind } = await start('accepts');
    await expect(orderOnce(bus, order)).resolves.toMatchObject({ ok: true });
    logind.reboot = 'refuses';
    await expect(orderOnce(bus, order)).resolves.toEqual({
      ok: false,
      reason: 'Already in progress',
      error: 'org.freedesktop.login1.OperationInProgress',
    });
    expect(logind.orders).toHaveLength(1);
  });

  it('counts a reply that is lost with the connection as accepted', async () => {
    const { bus, logind } = await start('vanishes');
    await expect(orderOnce(bus, order)).resolves.toMatchObject({ ok: true });
    expect(logind.orders).toHaveLength(1);
  });

  it('is refused on a connection that was lost before, since nothing is sent', async () => {
    const { bus, daemon, logind } = await start('accepts');
    const lost = once(bus.lost, 'abort');
    await daemon.kill();
    await lost;
    const reply = await orderOnce(bus, order);
    expect(reply).toMatchObject({ ok: false });
    expect(reply.ok ? '' : reply.reason).toContain(texts.bus_closed);
    expect(logind.orders).toEqual([]);
  });
});
