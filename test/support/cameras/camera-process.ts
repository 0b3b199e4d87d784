/**
 * A simulated ONVIF camera as a process, to run it inside a network namespace: `node camera-process.ts [URL]`. Prints its port, user and password as
 * JSON. What sends its picture gets a POST at the URL for each key frame that the camera is asked for.
 */
import { argv } from 'node:process';
import { startFakeCamera } from '../../fakes/fake-onvif-camera.ts';

const camera = await startFakeCamera();
const { port, settings } = camera;
const { username, password } = settings;
console.log(JSON.stringify({ port, username, password }));
const [key_frames] = argv.slice(2);
for (;;) {
  const { path } = await camera.next('SetSynchronizationPoint');
  if (path.endsWith('media') && key_frames !== undefined) await fetch(key_frames, { method: 'POST' });
}
