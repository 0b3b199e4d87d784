/** Vendor cameras, sixteen or as many as the argument says, in a process of their own, so that their work is not counted as the driver's. */
import { makeDirectory } from '../../support/temporary.ts';
import { FakeVendorCamera } from '../../fakes/fake-vendor-camera.ts';
import { selfSigned } from '../../support/cameras/vendorcam-lab.ts';

const cameras_count = Number(process.argv[2] ?? 16);

const tls = await selfSigned(await makeDirectory());
const cameras = Array.from({ length: cameras_count }, (_none, index) => {
  const camera = new FakeVendorCamera({ tls, mac: `EC:71:DB:00:01:${(index + 16).toString(16)}` });
  camera.camera.name = `Cam ${index}`;
  return camera;
});
await Promise.all(cameras.map(async (camera) => camera.start()));
process.on('message', ({ index, motion }: { readonly index: number; readonly motion: boolean }) => {
  const camera = cameras[index];
  if (camera) camera.camera.motion = motion;
});
process.on('disconnect', () => process.exit(0));
process.send?.(cameras.map(({ port }) => port));
