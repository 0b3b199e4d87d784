/** The age of the kit's report on its queue. */
import { freshness, isKitReachable } from './age.ts';
import type { Freshness, Now } from '../types.d.ts';

/** A kit with a broker reports its queue when it connects and with each state report; an older report counts as old. */
const queue_limit_ms = 60_000;

export function queueFreshness(now: Now): Freshness {
  const { queue } = now.world;
  return freshness(queue?.as_of, queue_limit_ms, now, isKitReachable(now) && queue?.online === true);
}
