/** Waiting for what has no event of its own: asks until it is so. */
import { sleep } from '../../src/platform/time.ts';

const ask_every_ms = 20;
/** Bounds a hang; a busy machine may need much of it. */
const patience_ms = 60_000;

/** Resolves once `holds`; rejects with `what` after `ms`. */
export async function eventually(
  what: string,
  holds: () => boolean | Promise<boolean>,
  ms = patience_ms,
): Promise<void> {
  const deadline_ms = performance.now() + ms;
  while (!(await holds())) {
    if (performance.now() > deadline_ms) throw new Error(`not within ${ms} ms: ${what}`);
    await sleep(ask_every_ms, new AbortController().signal);
  }
}

/** Lets the world go on for a while where the point is that nothing bad happens meanwhile. */
export async function letPass(ms: number): Promise<void> {
  await sleep(ms, new AbortController().signal);
}
