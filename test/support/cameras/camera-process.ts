/** A simulated ONVIF camera as a process, to run it inside a network namespace. Prints its port, user and password as JSON. */
import { startFakeCamera } from '../../fakes/fake-onvif-camera.ts';

const { port, settings } = await startFakeCamera();
const { username, password } = settings;
console.log(JSON.stringify({ port, username, password }));
