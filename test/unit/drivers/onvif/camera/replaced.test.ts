/** What answers at the address of a camera is not always that camera: it was replaced, or its name leads elsewhere now. */
import { createHook } from 'node:async_hooks';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { beforeEach, describe, expect, it } from 'vitest';
import { readStream } from '../../../../../drivers/onvif/camera/media.ts';
import { onvifOptions } from '../../../../../drivers/onvif/options.ts';
import { isHostShared } from '../../../../../src/toolkit/driver/host-option.ts';
import { failure } from '../../../../../drivers/onvif/soap/soap.ts';
import type { Soap } from '../../../../../drivers/onvif/soap/soap.ts';
import type { XmlNode } from '../../../../../drivers/onvif/soap/xml.ts';
import { texts as driverTexts } from '../../../../../src/toolkit/driver/texts.ts';
import { type FakeCamera } from '../../../../fakes/fake-onvif-camera.ts';
import { isStatus, labOfEachTest, said } from '../../../../support/cameras/onvif-lab.ts';
import { eventually } from '../../../../support/eventually.ts';

const lab = labOfEachTest();
let camera: FakeCamera;
beforeEach(async () => {
  camera = await lab.start();
});

const unusedSoap = {
  login: 'none' as const,
  fetch: async () => failure('malformed', ''),
  close: () => undefined,
};

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

describe('The stream of a camera that shares its host with another', () => {
  const xml = (text: string, children: XmlNode['children'] = {}): XmlNode => ({
    text,
    attributes: {},
    children,
  });
  const streamAt = async (uri: string, more: Partial<Soap['connection']>) => {
    const answer = { mediauri: [xml('', { uri: [xml(uri)] })] };
    const body = xml('', { getstreamuriresponse: [xml('', answer)] });
    const [host, port, path] = ['192.0.2.7', 8_081, '/'];
    const login = { username: undefined, password: undefined, fingerprint: undefined };
    const connection = { host, port, path, secure: false, is_host_shared: true, ...login, ...more };
    const soap = {
      connection,
      call: async () => ({ kind: 'reply' as const, body, local_address: undefined }),
    };
    const profiles = [{ token: 'sub', encoding: 'H264', pixels: 0, hasPtz: false }];
    return readStream({ ...unusedSoap, ...soap }, 'http://192.0.2.7:8081/media', {
      service: 'media',
      profiles,
    });
  };

  it.each([
    [
      'is withheld where a router may forward the reported port to the other',
      'rtsp://192.168.1.5:554/sub',
      {},
      null,
    ],
    [
      'is at rtsp_port where that is configured',
      'rtsp://192.168.1.5:554/sub',
      { rtsp_port: 8_555 },
      'rtsp://192.0.2.7:8555/sub',
    ],
    ['is where the camera reports it on that host', 'rtsp://192.0.2.7:8554/1', {}, 'rtsp://192.0.2.7:8554/1'],
    [
      'is at the reported port where no other is at the host',
      'rtsp://192.168.1.5:554/sub',
      { is_host_shared: false },
      'rtsp://192.0.2.7:554/sub',
    ],
  ])('%s', async (_, uri, more, url) => {
    const stream_fault = url === null ? driverTexts.shared_host : null;
    expect(await streamAt(uri, more)).toEqual({ rtsp_url: url, stream_fault });
  });

  it('is shared by every other camera that is configured at the host', () => {
    const [gate, yard] = ['gate', 'yard'].map((name, at) => ({ name, host: '192.0.2.7', port: 8_081 + at }));
    const { cameras } = onvifOptions.parse({ cameras: [gate, yard, { name: 'roof', host: '192.0.2.8' }] });
    expect(cameras.map((each) => isHostShared(each, cameras))).toEqual([true, true, false]);
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
    const streams = {
      want: (_key: string, url: string | null) => void urls.push(url),
      urlOf: () => null,
      healthOf: () => undefined,
    };
    const entry = await lab.entry(camera, { host: '::1%lo', port });
    const { outbox } = lab.run({ cameras: [entry] }, { streams });
    await outbox.until(isStatus('online'));
    expect(sent).toContain(`Host: [::1]:${port}\r\n`);
    expect(sent).not.toContain('%lo');
    expect(urls.at(-1)).toMatch(/^rtsp:\/\/[^@]*@\[::1%25lo\]:8554\/sub$/u);
    relay.close();
  });
});
