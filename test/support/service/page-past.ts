/** A day of the page's kit, as messages that the service has kept: links that fail, a flight, detections, tasks. */
import type { JsonObject } from '../../../src/contract/json.ts';
import { channels } from '../../../src/contract/topics.ts';
import { samples } from '../contract-samples.ts';
import { more_ids } from './page-kit.ts';
import { ids } from './page-lab.ts';
import type { ServiceLab } from './service-lab.ts';

const minute_ms = 60_000;
const minutes = 480;

export interface Past {
  readonly begin_ms: number;
  /** The interruption of `eth3`. */
  readonly down_ms: readonly [from_ms: number, to_ms: number];
}

/** Eight hours up to now: telemetry and a fix every five minutes, one interruption, one flight, detections each hour. */
export async function playPast(lab: ServiceLab, { now_ms = Date.now() } = {}): Promise<Past> {
  const begin_ms = now_ms - minutes * minute_ms;
  const at = (minute: number): { readonly said_ms: number } => ({ said_ms: begin_ms + minute * minute_ms });
  for (let minute = 0; minute < minutes; minute += 5) {
    const isDown = minute >= 120 && minute < 180;
    await lab.publish(
      channels.telemetry,
      {
        battery: 90 - minute / 20,
        battery_charging: false,
        gateway: { name: 'gw-7', cpu_pct: 20 + (minute % 30), mem_pct: 40 },
        wans: [
          {
            name: 'eth3',
            type: 'satellite',
            status: isDown ? 'offline' : 'online',
            ...(isDown ? {} : { latency_ms: 40 + (minute % 20), packet_loss_pct: 0 }),
          },
          { name: 'wwan0', type: 'cellular', status: isDown ? 'online' : 'standby', latency_ms: 70 },
        ],
      },
      at(minute),
    );
    await lab.publish(channels.feed(ids.drone, 'gps'), fixOf(minute), at(minute));
    await lab.publish(
      channels.feed(ids.drone, 'battery'),
      { ...samples['droneBattery'], remaining_pct: 100 - minute / 10 },
      at(minute),
    );
    if (minute % 60 === 0) await detection(lab, at, minute);
  }
  await edge(lab, 'offline', 'no satellite', at(120));
  await edge(lab, 'online', null, at(180));
  await lab.publish(
    channels.event(ids.drone, 'asset_status'),
    { status: 'offline', reason: 'no heartbeat for 5 s' },
    at(200),
  );
  return { begin_ms, down_ms: [begin_ms + 120 * minute_ms, begin_ms + 180 * minute_ms] };
}

type At = (minute: number) => { readonly said_ms: number };

async function detection(lab: ServiceLab, at: At, minute: number): Promise<void> {
  const channel = channels.event(more_ids.camera, 'ai_detection');
  const timestamp = new Date().toISOString();
  await lab.publish(channel, { detected: true, types: ['people'], timestamp }, at(minute));
  await lab.publish(channel, { detected: false, types: [], timestamp }, at(minute + 4));
}

async function edge(
  lab: ServiceLab,
  status: string,
  reason: string | null,
  at: ReturnType<At>,
): Promise<void> {
  await lab.publish(
    channels.event(more_ids.gateway, 'link_status'),
    { name: 'eth3', type: 'satellite', status, reason },
    at,
  );
}

/** A circle around the kit, at a height that rises and falls. */
function fixOf(minute: number): JsonObject {
  const angle = (minute / 240) * 2 * Math.PI;
  return {
    ...samples['droneGps'],
    lat: 47.39 + 0.004 * Math.cos(angle),
    lon: 8.54 + 0.006 * Math.sin(angle),
    relative_alt_m: 60 + 40 * Math.sin(angle),
  };
}
