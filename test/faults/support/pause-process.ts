/** Prints each time in which this processor ran nothing of ours. Started by `pauses.ts` with real-time priority, so that no other program delays it. */
import { writeSync } from 'node:fs';
import { stdout } from 'node:process';

const wait_ms = 5;
const long_ms = 20;
const never = new Int32Array(new SharedArrayBuffer(4));

for (let last_ms = Date.now(); ;) {
  Atomics.wait(never, 0, 0, wait_ms);
  const now_ms = Date.now();
  if (now_ms - last_ms >= long_ms) {
    writeSync(stdout.fd, `${JSON.stringify({ from_ms: last_ms, to_ms: now_ms })}\n`);
  }
  last_ms = now_ms;
}
