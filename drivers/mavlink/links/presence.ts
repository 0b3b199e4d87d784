/** Sends our heartbeat: 1 Hz on every link, only while this process runs on time. */
import { every } from '../../../src/platform/time.ts';
import type { Link } from './link.ts';
import type { MavlinkOptions } from '../options.ts';
import type { Outgoing } from './outgoing.ts';

const beat_ms = 1_000;
/** After a stall of this length one heartbeat is skipped: autopilots may rely on its sender. */
const late_max_ms = 2_000;
const type_ground_station = 6;
const type_onboard_controller = 18;
const autopilot_none = 8;
const state_active = 4;
const mavlink_version = 3;

/** Sends heartbeats until `signal` aborts, but not over satellites. */
export function sendHeartbeats(
  links: readonly Link[],
  {
    out,
    role,
    signal,
  }: { readonly out: Outgoing; readonly role: MavlinkOptions['role']; readonly signal: AbortSignal },
): void {
  const type = role === 'ground_station' ? type_ground_station : type_onboard_controller;
  const heartbeat = {
    custom_mode: 0,
    type,
    autopilot: autopilot_none,
    base_mode: 0,
    system_status: state_active,
    mavlink_version,
  };
  let last_ms = performance.now();
  every(beat_ms, signal, () => {
    const now_ms = performance.now();
    const is_on_time = now_ms - last_ms < late_max_ms;
    last_ms = now_ms;
    if (!is_on_time) return;
    for (const link of links) if (!link.high_latency) out.send('HEARTBEAT', heartbeat, { link });
  });
}
