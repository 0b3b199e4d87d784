/** Video from the announcement to the viewer: a camera, the connector, a media server, a broker and a WebRTC peer. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startFakeMediaMtx } from '../fakes/services/fake-mediamtx.ts';
import { startFakeCamera } from '../fakes/fake-onvif-camera.ts';
import { startMosquitto } from '../support/brokers/broker.ts';
import { withKit } from '../support/kit/kit.ts';
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
});
