/** Figures of the connection to the broker: whether it is there, how fast it answers, and what it carried over which link. */
import { Counter, Histogram, type Registry } from 'prom-client';
import { linkType } from '../../contract/kit.ts';
import { every } from '../../platform/time.ts';
import type { Acknowledged } from '../../uplink/sender.ts';
import { counter, gauge, known, one, prefix } from './metric.ts';
import type { ReportParts } from '../status-report.ts';

/** From a broker on the same network to one behind a geostationary satellite that is congested. */
const puback_buckets_s = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const look_every_ms = 1_000;

export function uplinkMetrics(
  registry: Registry,
  { uplink, uplink_events, hub }: ReportParts,
  signal: AbortSignal,
): void {
  gauge(registry, { name: 'uplink_connected', help: '1: the broker is connected' }, () =>
    one(uplink.online ? 1 : 0),
  );
  gauge(
    registry,
    { name: 'uplink_in_flight', help: 'Messages that were sent and are not yet acknowledged' },
    () => one(uplink.status().in_flight),
  );
  gauge(
    registry,
    { name: 'uplink_round_trip_seconds', help: 'Shortest time between message and PUBACK lately' },
    () => {
      const { rtt_ms } = uplink.status();
      return known(rtt_ms === null ? null : rtt_ms / 1_000);
    },
  );
  const offlineSeconds = offlineMeter(() => uplink.online, signal);
  counter(
    registry,
    { name: 'uplink_offline_seconds_total', help: 'Time without the broker since the start' },
    () => one(offlineSeconds()),
  );
  const puback = new Histogram({
    name: `${prefix}puback_seconds`,
    help: 'Time between a message and its PUBACK',
    buckets: puback_buckets_s,
    registers: [registry],
  });
  const sent = new Counter({
    name: `${prefix}uplink_sent_bytes_total`,
    help: 'Bytes of MQTT messages that the broker acknowledged, by the type of the link in use',
    labelNames: ['link_type'],
    registers: [registry],
  });
  for (const link_type of [...linkType.options, 'unknown']) sent.inc({ link_type }, 0);
  const count = ({ bytes, delay_ms }: Acknowledged): void => {
    puback.observe(delay_ms / 1_000);
    const link = hub.links().find(({ status }) => status === 'online');
    sent.inc({ link_type: link?.type ?? 'unknown' }, bytes);
  };
  uplink_events.on('acknowledged', count);
  signal.addEventListener('abort', () => uplink_events.off('acknowledged', count), { once: true });
}

/** Adds up the time offline; an outage shorter than a look may not be seen. */
function offlineMeter(isOnline: () => boolean, signal: AbortSignal): () => number {
  let offline_ms = 0;
  let looked_ms = performance.now();
  const look = (): void => {
    const now_ms = performance.now();
    if (!isOnline()) offline_ms += now_ms - looked_ms;
    looked_ms = now_ms;
  };
  every(look_every_ms, signal, look);
  return () => {
    look();
    return offline_ms / 1_000;
  };
}
