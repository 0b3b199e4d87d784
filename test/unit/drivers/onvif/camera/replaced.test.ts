/** What answers at the address of a camera is not always that camera: it was replaced, or its name leads elsewhere now. */
import { createHook } from 'node:async_hooks';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { texts as driverTexts } from '../../../../../src/driver/texts.ts';
import { type FakeCamera, startFakeCamera } from '../../../../fakes/fake-onvif-camera.ts';
import { type CameraLab, cameraLab, said } from '../../../../support/cameras/onvif-lab.ts';
import { eventually } from '../../../../support/eventually.ts';

let lab: CameraLab;
let camera: FakeCamera;
beforeEach(async () => {
  lab = await cameraLab();
  camera = await startFakeCamera();
});
afterEach(async () => {
  await lab.stop();
  await camera.stop();
});

const isStatus = (status: string) => said('asset_status', (data) => data['status'] === status);

describe('A camera that is replaced between two answers', () => {
  const replace = (): void => {
    Object.assign(camera.settings, { serial: 'SPARE', mac: '00:1b:c5:00:00:99' });
    camera.events.forgetAll();
    camera.events.set('tns1:VideoSource/MotionAlarm', 'State', 'true');
  };

  it.each([
    ['is pulled', 'auto', 'PullMessages'],
    ['calls', 'webhook', 'Subscribe'],
    ['has no events', 'off', 'GetStreamUri'],
  ])('is not published as the one before, where it %s', async (_, events, last) => {
    const served = camera.next(last);
    const { outbox, log } = lab.run({ cameras: [await lab.entry(camera, { events })], pull_s: 1 });
    await outbox.until(isStatus('online'));
    await served;
    replace();
    await outbox.until(isStatus('offline'), 30_000);
    await eventually('it is reported', () => log.at('error').includes(driverTexts.identity_claimed));
    expect(outbox.drafts.filter(said('motion', (data) => data['detected'] === true))).toEqual([]);
  });
});

describe('A camera that is configured by its name', () => {
  it('is looked up once for each connection: the name may lead to another camera meanwhile', async () => {
    let lookups = 0;
    const hook = createHook({
      init: (_id, type) => {
        if (type === 'GETADDRINFOREQWRAP') lookups += 1;
      },
    }).enable();
    try {
      const { outbox } = lab.run({ cameras: [await lab.entry(camera, { host: 'localhost' })], pull_s: 1 });
      await outbox.until(isStatus('online'));
      await camera.next('PullMessages');
      expect([camera.requests.length > 5, lookups]).toEqual([true, 1]);
      await camera.lose();
      await outbox.until(isStatus('offline'));
      await camera.restore();
      outbox.clear();
      const before = lookups;
      await outbox.until(isStatus('online'));
      expect(lookups).toBeGreaterThan(before);
    } finally {
      hook.disable();
    }
  });
});

describe('A camera at an IPv6 address with a zone', () => {
  it('is served there, and the zone is not sent to it', async () => {
    let sent = '';
    const relay = createServer((socket) => {
      const onward = connect(camera.port, '127.0.0.1');
      socket.on('data', (piece) => (sent += piece.toString('latin1')));
      socket.on('error', () => undefined);
      onward.on('error', () => undefined);
      socket.pipe(onward).pipe(socket);
    });
    relay.listen(0, '::1');
    await once(relay, 'listening');
    const at = relay.address();
    const port = typeof at === 'object' && at !== null ? at.port : 0;
    const urls: (string | null)[] = [];
    const streams = { want: (_key: string, url: string | null) => void urls.push(url), urlOf: () => null };
    const entry = await lab.entry(camera, { host: '::1%lo', port });
    const { outbox } = lab.run({ cameras: [entry] }, { streams });
    await outbox.until(isStatus('online'));
    expect(sent).toContain(`Host: [::1]:${port}\r\n`);
    expect(sent).not.toContain('%lo');
    expect(urls.at(-1)).toMatch(/^rtsp:\/\/[^@]*@\[::1%25lo\]:8554\/sub$/u);
    await lab.stop();
    relay.close();
  });
});
