/** Cameras with TLS 1.0 and 1.1 only: not served unless the configuration allows it, and the kit says so. */
import { X509Certificate } from 'node:crypto';
import { afterEach, expect, it } from 'vitest';
import { degradedReasons } from '../../../src/kit/app/degraded.ts';
import { texts } from '../../../src/toolkit/device/texts.ts';
import { startFakeCamera } from '../../fakes/fake-onvif-camera.ts';
import { cameraLab } from '../../support/cameras/onvif-lab.ts';
import { selfSigned, vendorcamLab } from '../../support/cameras/vendorcam-lab.ts';
import { eventually } from '../../support/eventually.ts';
import type { hubLab } from '../../support/kit/hub-lab.ts';
import { well } from '../../support/kit/troubles.ts';
import { withDirectory } from '../../support/temporary.ts';

/** As the review made one: OpenSSL speaks these versions at security level 0 only. */
const old_versions = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'ALL:@SECLEVEL=0' } as const;

const ends: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

const reasonOf = ({ hub }: ReturnType<typeof hubLab>): string => hub.drivers()[0]?.devices?.[0]?.reason ?? '';
const degraded = ({ hub }: ReturnType<typeof hubLab>): readonly string[] =>
  degradedReasons({ ...well, drivers: hub.drivers() });
const isOnline = ({ hub }: ReturnType<typeof hubLab>): boolean => hub.assets()[0]?.status === 'online';

it('names the option for a camera of vendorcam, and serves it with the option and a degraded kit', async () => {
  const lab = await vendorcamLab({ secure: true });
  ends.push(lab.stop);
  await lab.camera.lose();
  lab.camera.showCertificate({ ...(await selfSigned(lab.dir)), ...old_versions });
  await lab.camera.start();
  lab.start();
  await eventually('it is said', () => reasonOf(lab.hub) === texts.legacy_tls_only);
  expect(degraded(lab.hub)).toEqual([]);
  await lab.restart(lab.options({ legacy_tls: true }));
  await eventually('it is served', () => isOnline(lab.hub));
  expect(degraded(lab.hub)).toEqual([texts.legacy_tls('gate')]);
});

it('names the option for an ONVIF camera, and serves it with the option and a degraded kit', async () => {
  await withDirectory(async (dir) => {
    const pem = await selfSigned(dir);
    const camera = await startFakeCamera({}, { ...pem, ...old_versions });
    const lab = await cameraLab();
    ends.push(
      async () => lab.stop(),
      async () => camera.stop(),
    );
    const { fingerprint256: fingerprint } = new X509Certificate(pem.cert);
    const refused = lab.run({ cameras: [await lab.entry(camera, { name: 'Gate', tls: { fingerprint } })] });
    await eventually('it is said', () => reasonOf(refused).includes(texts.legacy_tls_only));
    await refused.stop();
    const tls = { fingerprint, legacy: true };
    const served = lab.run({ cameras: [await lab.entry(camera, { name: 'Gate', tls })] });
    await eventually('it is served', () => isOnline(served));
    expect(degraded(served)).toEqual([texts.legacy_tls('Gate')]);
  });
});
