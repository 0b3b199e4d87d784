/** Cameras whose login the configuration protects with TLS: plain RTSP gets it only where the configuration allows that. */
import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { type FakeCamera, startFakeCamera } from '../../fakes/fake-onvif-camera.ts';
import { eventually } from '../../support/eventually.ts';
import { hubLab } from '../../support/kit/hub-lab.ts';
import { type CameraLab, cameraLab } from '../../support/cameras/onvif-lab.ts';
import { withDirectory } from '../../support/temporary.ts';
import { selfSigned, type VendorcamLab, vendorcamLab } from '../../support/cameras/vendorcam-lab.ts';
import type { AssetView } from '../../../src/kit/hub/assets/asset.ts';
import type { Driver } from '../../../src/toolkit/driver/driver.ts';
import { onvif } from '../../../drivers/onvif/onvif.ts';
import { texts } from '../../../src/kit/hub/texts.ts';

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

interface Shown {
  readonly asset: AssetView | undefined;
  /** Addresses that the media server was given. */
  readonly streams: readonly (string | null)[];
  readonly warnings: readonly string[];
}

async function shown(driver: Driver, options: unknown, state_dir: string): Promise<Shown> {
  const streams: (string | null)[] = [];
  const want = (_key: string, url: string | null): void => void streams.push(url);
  const lab = hubLab({
    configured: ['cameras'],
    state_dir,
    streams: { want, urlOf: () => null, healthOf: () => ({ state: 'works' }) },
  });
  ends.push(lab.stop);
  void lab.run(driver, 'cameras', { options });
  await eventually('the camera is online', () => lab.hub.assets()[0]?.status === 'online');
  return {
    asset: lab.hub.assets()[0],
    streams,
    warnings: lab.log.at('warn'),
  };
}

const withheld = texts.stream_withheld;

describe('a camera of onvif that is reached over TLS', () => {
  async function secureCamera(dir: string): Promise<{ camera: FakeCamera; lab: CameraLab; tls: object }> {
    const pem = await selfSigned(dir);
    const [lab, camera] = await Promise.all([cameraLab(), startFakeCamera({}, pem)]);
    ends.push(
      async () => lab.stop(),
      async () => camera.stop(),
    );
    return { camera, lab, tls: { fingerprint: new X509Certificate(pem.cert).fingerprint256 } };
  }

  it('has no video where its stream is plain RTSP, and the kit reports why', async () => {
    await withDirectory(async (dir) => {
      const { camera, lab, tls } = await secureCamera(dir);
      const { asset, streams, warnings } = await shown(
        onvif,
        { cameras: [await lab.entry(camera, { tls })] },
        dir,
      );
      expect(streams).toEqual([null]);
      expect(asset?.health.stream).toMatchObject({ state: 'fails' });
      expect(asset?.health.stream?.reason).toContain('allow_plain_rtsp: true');
      expect(warnings.filter((sentence) => sentence === withheld)).toHaveLength(1);
    });
  });

  it('has video over plain RTSP where its entry allows that', async () => {
    await withDirectory(async (dir) => {
      const { camera, lab, tls } = await secureCamera(dir);
      const entry = await lab.entry(camera, { tls, allow_plain_rtsp: true });
      const { asset, streams } = await shown(onvif, { cameras: [entry] }, dir);
      expect(streams).toEqual([expect.stringMatching(/^rtsp:\/\/kit:/u)]);
      expect(asset?.health.stream?.state).toBe('works');
    });
  });
});

describe('a camera of vendorcam', () => {
  async function pinned(): Promise<VendorcamLab & { certificate_sha256: string }> {
    const lab = await vendorcamLab({ secure: true });
    ends.push(lab.stop);
    const certificate_sha256 = new X509Certificate(await readFile(join(lab.dir, 'camera.crt')))
      .fingerprint256;
    return Object.assign(lab, { certificate_sha256 });
  }

  it('has no video where its certificate is configured, and the kit reports why', async () => {
    const { driver, options, dir, certificate_sha256 } = await pinned();
    const { asset, streams, warnings } = await shown(driver, options({ certificate_sha256 }), dir);
    expect(streams).toEqual([null]);
    expect(asset?.health.stream).toMatchObject({ state: 'fails' });
    expect(asset?.health.stream?.reason).toContain('allow_plain_rtsp: true');
    expect(warnings).toContain(withheld);
  });

  it.each([
    [
      'its entry allows plain RTSP',
      (certificate_sha256: string) => ({ certificate_sha256, allow_plain_rtsp: true }),
    ],
    ['no certificate is configured', () => ({})],
  ])('has video where %s', async (_, entry) => {
    const { driver, options, dir, certificate_sha256 } = await pinned();
    const { asset, streams } = await shown(driver, options(entry(certificate_sha256)), dir);
    expect(streams).toEqual([expect.stringMatching(/^rtsp:\/\/admin:/u)]);
    expect(asset?.health.stream?.state).toBe('works');
  });
});
