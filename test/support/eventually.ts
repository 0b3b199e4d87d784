/** Waiting for what has no event of its own: asks until it is so. */
import { sleep } from '../../src/platform/time.ts';

const ask_every_ms = 20;
/** In virtual time each look costs real time: hours are looked at less often, or a busy machine takes minutes for them. */
const asks_max = 10_000;
/** Bounds a hang; a busy machine may need much of it. */
const patience_ms = 60_000;
/** A turn of the event loop that took longer was a stall of the process, in which nothing could happen: it counts as this. */
const stall_ms = 100;

/** Resolves once `holds`; rejects with `what` after `ms` in which this process ran. */
export async function eventually(
  what: string,
  holds: () => boolean | Promise<boolean>,
  ms = patience_ms,
): Promise<void> {
  let used_ms = 0;
  for (let asked_ms = performance.now(); !(await holds());) {
    if (used_ms > ms) throw new Error(`not within ${ms} ms: ${what}`);
    await sleep(Math.max(ask_every_ms, ms / asks_max), new AbortController().signal);
    const now_ms = performance.now();
    used_ms += ms < patience_ms ? Math.min(now_ms - asked_ms, stall_ms) : now_ms - asked_ms;
    asked_ms = now_ms;
  }
}
