/** A camera that reports addresses of others: its password is not sent there, and the rest of it is served. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type FakeCamera } from '../../../fakes/fake-onvif-camera.ts';
import { elapse } from '../../../support/elapse.ts';
import { labOfEachTest, said } from '../../../support/cameras/onvif-lab.ts';

const lab = labOfEachTest();
let camera: FakeCamera;
let thief: Server;
let visits = 0;
let port = 0;
beforeEach(async () => {
  visits = 0;
  thief = createServer((socket) => {
    visits += 1;
    socket.destroy();
  }).listen(0, '127.0.0.2');
  await once(thief, 'listening');
  const at = thief.address();
  port = typeof at === 'object' && at !== null ? at.port : 0;
  camera = await lab.start({});
});
afterEach(async () => {
  thief.close();
  await once(thief, 'close');
});

const service = (name: string, address: string): string =>
  `<tds:Service><tds:Namespace>http://www.onvif.org/${name}/wsdl</tds:Namespace><tds:XAddr>${address}</tds:XAddr></tds:Service>`;

describe('a camera that reports its services on another host', () => {
  it.each([
    ['as an opaque URL', (to: number) => `x:@127.0.0.2:${to}/stolen`],
    ['behind a user name', (to: number) => `http://127.0.0.1@127.0.0.2:${to}/stolen`],
    ['plainly', (to: number) => `http://127.0.0.2:${to}/stolen`],
    ['without a scheme', (to: number) => `//127.0.0.2:${to}/stolen`],
  ])('%s is served, and the other host gets no connection', async (_, reported) => {
    const at = reported(port);
    const services = ['ver10/device', 'ver10/media', 'ver20/ptz', 'ver10/events'].map((name) =>
      service(name, at),
    );
    camera.misbehave('GetServices', {
      body: `<tds:GetServicesResponse>${services.join('')}</tds:GetServicesResponse>`,
    });
    await lab.serve(camera);
    await elapse(300);
    expect(visits).toBe(0);
  });
});

describe('a camera that reports addresses without a host', () => {
  // yi-hack (roleoroleo/yi-hack-MStar#537), RaySharp (agsh/onvif#231)
  it('is served where it is configured, with its stream, movements and events, and is no suspect', async () => {
    camera.settings.services_base = 'http://';
    camera.settings.rtsp_base = 'rtsp://';
    camera.events.foreign_base = 'http://';
    const { outbox, log } = await lab.serve(camera);
    await camera.next('PullMessages');
    camera.events.set('tns1:VideoSource/MotionAlarm', 'State', 'true');
    await outbox.until(said('motion', ({ detected }) => detected === true));
    expect(JSON.stringify(outbox.drafts)).toContain('ptz_move');
    expect(camera.count('GetStreamUri')).toBe(1);
    expect(log.at('warn')).toEqual([]);
  });
});

describe('a camera that reports its subscription on another host', () => {
  it('is pulled where it is configured, and the other host gets no connection', async () => {
    const address = `x:@127.0.0.2:${port}/stolen`;
    camera.misbehave('CreatePullPointSubscription', {
      body: `<tev:CreatePullPointSubscriptionResponse><tev:SubscriptionReference><wsa:Address>${address}</wsa:Address></tev:SubscriptionReference><wsnt:CurrentTime>2026-11-21T10:00:00Z</wsnt:CurrentTime><wsnt:TerminationTime>2026-11-21T10:03:00Z</wsnt:TerminationTime></tev:CreatePullPointSubscriptionResponse>`,
    });
    await lab.serve(camera);
    await camera.next('PullMessages');
    expect(visits).toBe(0);
  });
});
