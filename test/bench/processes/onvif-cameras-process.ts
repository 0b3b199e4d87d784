/** Cameras of their own process; one of them sees motion from time to time and says when. */
import { startFakeCamera } from '../../fakes/fake-onvif-camera.ts';
import { monotonic_us } from '../../support/witness.ts';

const count = Number(process.argv[2]);
const cameras = await Promise.all(
  Array.from({ length: count }, async (_, index) =>
    startFakeCamera({ serial: `BENCH-${index}`, password: 'bench', auth: 'ws_security' }),
  ),
);
process.send?.({ ports: cameras.map(({ port }) => port) });
process.on('message', ({ camera, detected }: { camera: number; detected: boolean }) => {
  process.send?.({ camera, at_us: monotonic_us() });
  cameras[camera]?.events.set('tns1:VideoSource/MotionAlarm', 'State', String(detected));
});
process.once('disconnect', () => process.exit());
