/** The modem driver on message buses that die, hang, refuse and lie. */
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { openBus, texts } from '../../../../src/toolkit/device/dbus/bus.ts';
import { DeviceUnreachable } from '../../../../src/platform/errors.ts';
import { startFakeModemManager } from '../../../fakes/services/fake-modem-manager.ts';
import { makeMessageBus } from '../../../support/drivers/message-bus.ts';
import { eventually } from '../../../support/eventually.ts';
import { peerMissing } from '../../../support/peers.ts';
import { withDirectory } from '../../../support/temporary.ts';
import { modemLab } from './modem-lab.ts';

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

function startLab(address: string, options: object = {}) {
  const lab = modemLab(address, options);
  closing.push(lab.stop);
  return lab;
}

describe.skipIf(peerMissing('dbus-daemon'))('the message bus', () => {
  it('is restored after a kill and a restart', async () => {
    const bus = await makeMessageBus();
    closing.push(async () => bus.stop());
    await bus.start();
    const manager = await startFakeModemManager(bus.address);
    manager.add({ index: 0 });
    const { isp, down, view } = startLab(bus.address);
    await isp('TestTel');
    await bus.kill();
    await down(/D-Bus at unix:path=/u);
    await bus.start();
    const next = await startFakeModemManager(bus.address);
    closing.push(async () => next.stop());
    next.add({ index: 0 });
    await eventually('the bus again', () => view()?.state === 'up');
    await isp('TestTel');
  });

  it('is lost while it hangs, and restored when it continues', async () => {
    const bus = await makeMessageBus();
    closing.push(async () => bus.stop());
    await bus.start();
    const manager = await startFakeModemManager(bus.address);
    closing.push(async () => manager.stop());
    manager.add({ index: 0 });
    const { down, isp, view } = startLab(bus.address, { timeout_s: 0.3, interval_s: 1 });
    await isp('TestTel');
    bus.freeze();
    await down(/did not answer/u);
    bus.thaw();
    await eventually('the bus again', () => view()?.state === 'up');
    await isp('TestTel');
  });

  it('is lost when it hangs from the start, and restored when it continues', async () => {
    const bus = await makeMessageBus();
    closing.push(async () => bus.stop());
    await bus.start();
    const manager = await startFakeModemManager(bus.address);
    closing.push(async () => manager.stop());
    manager.add({ index: 0 });
    bus.freeze();
    const { down, isp, view } = startLab(bus.address, { timeout_s: 0.3 });
    await down(/did not answer Hello in time/u);
    bus.thaw();
    await eventually('the bus again', () => view()?.state === 'up');
    await isp('TestTel');
  });

  it('does not delay a stopping daemon while it hangs', async () => {
    const bus = await makeMessageBus();
    closing.push(async () => bus.stop());
    await bus.start();
    bus.freeze();
    const { stop, view } = startLab(bus.address);
    await eventually('it runs', () => view() !== undefined);
    await stop();
    expect(view()?.state).toBe('stopped');
  });

  it('has another reason than a missing one', async () => {
    await withDirectory(async (dir) => {
      const { down, view } = startLab(`unix:path=${join(dir, 'none')}`);
      await down(/no such socket; check that dbus-daemon runs/u);
      expect(view()?.state).toBe('down');
      for (const close of closing.splice(0).reverse()) await close();
    });
  });

  it.each([
    ['refuses us', 'REJECTED EXTERNAL\r\n', texts.not_bus('REJECTED EXTERNAL')],
    ['hangs up', '', ''],
    ['is none', 'HTTP/1.1 400 Bad Request\r\n\r\n', texts.not_bus('HTTP/1.1 400 Bad Request')],
    ['sends garbage after the greeting', greeted('\u00ff'.repeat(64)), 'rejected a message'],
  ])('that %s is a lost device', async (_what, answer, reason) => {
    await withDirectory(async (dir) => {
      const path = join(dir, 'bus');
      const server = await serve(path, answer);
      const stopping = new AbortController();
      try {
        const outcome = await openBus({
          address: `unix:path=${path}`,
          timeout_ms: 2_000,
          signal: stopping.signal,
          onSignal: () => undefined,
        })
          .then(async (opened) => opened.listen("type='signal'"))
          .catch((error: unknown) => error);
        expect(outcome).toBeInstanceOf(DeviceUnreachable);
        expect(String(outcome)).toContain(reason);
      } finally {
        stopping.abort();
        await new Promise((resolve) => {
          server.close(resolve);
        });
      }
    });
  });
});

/** A server on a unix socket that answers whoever comes with this text, and hangs up when it is empty. */
async function serve(path: string, answer: string): Promise<Server> {
  const server = createServer((socket: Socket) => {
    socket.on('error', () => undefined);
    socket.on('data', () => (answer === '' ? socket.destroy() : socket.write(answer, 'latin1')));
  });
  await new Promise<void>((resolve) => {
    server.listen(path, resolve);
  });
  return server;
}

/** What a bus sends that accepts the login, and then this. */
function greeted(bytes: string): string {
  return `OK 0123456789abcdef\r\n${bytes}`;
}
