/** As many ONVIF cameras and as many vendor cameras as the argument says, in a process of their own; tells their ports. */
import { startFakeCamera } from '../../fakes/fake-onvif-camera.ts';
import { FakeVendorCamera } from '../../fakes/fake-vendor-camera.ts';
import { selfSigned } from '../../support/cameras/vendorcam-lab.ts';
import { makeDirectory } from '../../support/temporary.ts';

const indexes = Array.from({ length: Number(process.argv[2]) }, (_none, index) => index);

const onvif = await Promise.all(
  indexes.map(async (index) =>
    startFakeCamera({ serial: `BENCH-${index}`, password: 'bench', auth: 'ws_security' }),
  ),
);
const tls = await selfSigned(await makeDirectory());
const vendor = indexes.map((index) => {
  const camera = new FakeVendorCamera({ tls, mac: `EC:71:DB:00:01:${(index + 16).toString(16)}` });
  camera.camera.name = `Cam ${index}`;
  return camera;
});
await Promise.all(vendor.map(async (camera) => camera.start()));
process.once('disconnect', () => process.exit());
process.send?.({ onvif: onvif.map(({ port }) => port), vendor: vendor.map(({ port }) => port) });
