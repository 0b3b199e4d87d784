/** Video from the announcement to the viewer: a camera, the connector, a media server, a broker and a WebRTC peer. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startFakeMediaMtx } from '../fakes/services/fake-mediamtx.ts';
import { startFakeCamera } from '../fakes/fake-onvif-camera.ts';
import { z } from 'zod';
import { texts } from '../../src/kit/app/texts.ts';
import { type Child, startChild } from '../support/child.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/ports.ts';
import { makeDirectory } from '../support/temporary.ts';
import { startMosquitto } from '../support/brokers/broker.ts';
import { command_file, withKit } from '../support/kit/kit.ts';
import { peerMissing } from '../support/peers.ts';
import { watchWhep } from '../support/cameras/whep-viewer.ts';

describe.skipIf(peerMissing('mosquitto'))('video', () => {
  it('a viewer of the address that an announcement names receives video', async () => {
    const camera = await startFakeCamera();
    const media = await startFakeMediaMtx();
    const broker = await startMosquitto();
    try {
      await withKit({ rehearsed: false }, async (kit) => {
        const password_file = join(kit.dir, 'password');
        await writeFile(password_file, camera.settings.password, { mode: 0o600 });
        const { username } = camera.settings;
        const entry = { name: 'Gate', host: '127.0.0.1', port: camera.port, username, password_file };
        await kit.configure({
          broker: { url: broker.url },
          media: { server: 'mediamtx', api_url: media.api_url, viewer_url: media.viewer_url },
          drivers: [{ driver: 'onvif', options: { cameras: [entry] } }],
        });
        const cloud = await kit.listen(broker.url);
        const daemon = await kit.start();
        const announced = await cloud.until(
          'the camera is announced with an address for viewers',
          ({ channel, data }) => /^asset\/[^/]+$/u.test(channel) && typeof data?.['whep_url'] === 'string',
          20_000,
        );
        const { whep_url } = announced.data ?? {};
        if (typeof whep_url !== 'string') throw new Error('there is no address');
        expect(whep_url.startsWith(`${media.viewer_url}/`)).toBe(true);
        expect(await watchWhep(whep_url, 10)).toBeGreaterThanOrEqual(10);
        const [path] = media.paths.values();
        // The smaller H.264 stream, fetched by the media server alone and only while somebody looks.
        expect(path).toMatchObject({ sourceOnDemand: true });
        expect(path?.['source']).toMatch(/^rtsp:\/\/kit:[^@]+@127\.0\.0\.1:8554\/sub$/u);
        const secrets = [camera.settings.password, encodeURIComponent(camera.settings.password)];
        const published = cloud.raw.map(({ topic, payload }) => `${topic} ${payload.toString()}`).join('\n');
        for (const secret of secrets) expect(published).not.toContain(secret);
        for (const secret of secrets) expect(daemon.output()).not.toContain(secret);
      });
    } finally {
      await broker.stop();
      await media.stop();
      await camera.stop();
    }
  });

  it('a viewer of the service, which the broker joins with the kit, receives video and leaves no stream behind', async () => {
    const camera = await startFakeCamera();
    const media = await startFakeMediaMtx();
    const broker = await startMosquitto();
    const dir = await makeDirectory();
    let service: Child | undefined;
    try {
      await withKit({ rehearsed: false }, async (kit) => {
        const secret = 'a-secret-of-the-turn-server';
        const [password_file, secret_file] = [join(kit.dir, 'password'), join(dir, 'turn-secret')];
        await writeFile(password_file, camera.settings.password, { mode: 0o600 });
        await writeFile(secret_file, secret, { mode: 0o600 });
        const battery = join(dir, 'sys/class/power_supply/BAT0');
        await mkdir(battery, { recursive: true });
        const files = { type: 'Battery', present: '1', capacity: '90', status: 'Discharging' };
        for (const [name, text] of Object.entries(files)) await writeFile(join(battery, name), `${text}\n`);
        const { username } = camera.settings;
        const entry = { name: 'Gate', host: '127.0.0.1', port: camera.port, username, password_file };
        const ice_server = { url: 'stun:127.0.0.1:9', username: '', password: '' };
        await kit.configure({
          broker: { url: broker.url },
          media: {
            server: 'mediamtx',
            api_url: media.api_url,
            viewer_url: media.viewer_url,
            ice_servers: [{ url: ice_server.url }],
          },
          drivers: [
            { driver: 'onvif', options: { cameras: [entry] } },
            { driver: 'power', options: { interval_s: 1, roots: { sys: join(dir, 'sys') } } },
          ],
          low_battery: {},
        });
        const port = await freePort();
        const config = join(dir, 'service.yaml');
        const turn = { urls: ['turn:127.0.0.1:9?transport=tcp'], secret_file };
        const text = {
          broker: { url: broker.url },
          database: join(dir, 'service.db'),
          listen: `127.0.0.1:${port}`,
          video: { turn },
        };
        await writeFile(config, JSON.stringify(text));
        const words = ['service', 'key', 'add', 'test', '--all-kits', '--config', config];
        const key = (await startChild([command_file, ...words]).ended).stdout.trim();
        const headers = { 'x-api-key': key };
        service = startChild([command_file, 'service', '--config', config]);
        await service.printed(/service connected to the broker/u);
        const cloud = await kit.listen(broker.url);
        const daemon = await kit.start();
        await cloud.until(
          'the camera is announced with an address for viewers',
          ({ channel, data }) => /^asset\/[^/]+$/u.test(channel) && typeof data?.['whep_url'] === 'string',
          20_000,
        );
        const listed = z.object({ assets: z.array(z.object({ whep_url: z.string().nullable() })) });
        let whep_url = '';
        await eventually('the service has the camera', async () => {
          const response = await fetch(`http://127.0.0.1:${port}/api/kits/${kit.kit_id}/assets`, { headers });
          const { assets = [] } = listed.safeParse(await response.json()).data ?? {};
          whep_url = assets.find((each) => each.whep_url !== null)?.whep_url ?? '';
          return whep_url !== '';
        });
        expect(new URL(whep_url).origin).toBe(`http://127.0.0.1:${port}`);
        expect(media.sessions.size).toBe(0);
        for (let n = 0; n < 3; n += 1)
          expect(await watchWhep(whep_url, 10, { headers })).toBeGreaterThanOrEqual(10);
        await eventually('no stream is left', () => media.sessions.size === 0);
        // What runs ends with the charge of the battery, and others get the reason.
        await watchWhep(whep_url, 10, { headers, leaves: false });
        expect(media.sessions.size).toBe(1);
        await writeFile(join(battery, 'capacity'), '5\n');
        await eventually('a low battery ends it', () => media.sessions.size === 0, 30_000);
        const asked = {
          method: 'POST',
          headers: { ...headers, 'content-type': 'application/sdp' },
          body: 'v=0',
        };
        expect(await (await fetch(whep_url, asked)).text()).toContain(texts.command_saved('video'));
        await writeFile(join(battery, 'capacity'), '90\n');
        await eventually(
          'its charge brings video back',
          async () => {
            const watched = watchWhep(whep_url, 1, { headers });
            return watched.then(Boolean, () => false);
          },
          60_000,
        );
        await eventually('no stream is left', () => media.sessions.size === 0);
        expect(media.global).toEqual({ webrtcICEServers2: [ice_server] });
        media.whep_refusal = { status: 400, error: 'codecs not supported by client' };
        const refused = await watchWhep(whep_url, 1, { headers }).catch(String);
        expect(refused).toContain('406');
        const seen = cloud.raw.map(({ topic, payload }) => `${topic} ${payload.toString()}`).join('\n');
        expect(seen).toContain('/up/whep/');
        for (const hidden of [secret, camera.settings.password, key])
          for (const place of [seen, daemon.output(), service.output()]) expect(place).not.toContain(hidden);
      });
    } finally {
      await service?.end('SIGKILL');
      await broker.stop();
      await media.stop();
      await camera.stop();
    }
  });
});
