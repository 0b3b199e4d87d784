/** Formats the facts of a published message for one terminal line. Pure. */
import type { JsonObject } from '../../contract/json.ts';
import { assetStatus } from '../../contract/assets.ts';
import { kitTelemetry } from '../../contract/kit.ts';
import { dropReport } from '../../contract/drops.ts';
import { taskStatus } from '../../contract/tasks.ts';
import { z } from 'zod';
import type { Paint } from './shell.ts';
import { texts } from '../texts.ts';

/** The fields that a line shows; tolerates messages of newer daemons. */
const announced = z.looseObject({
  type: z.string(),
  vendor: z.string().nullish(),
  model: z.string().nullish(),
  firmware: z.string().nullish(),
  status: assetStatus,
  status_reason: z.string().nullish(),
  health: z.record(z.string(), z.looseObject({ state: z.string(), reason: z.string().nullish() })).optional(),
});
const changed = z.looseObject({ status: assetStatus, reason: z.string().nullish() });
const reported = z.looseObject({
  command_name: z.string(),
  status: taskStatus,
  result: z.record(z.string(), z.json()),
});
const pictured = z.looseObject({
  alarms: z.array(z.looseObject({ feed: z.string() })),
  jpeg: z.string().nullable(),
  reason: z.string().nullable(),
});
const listed = z.looseObject({ assets: z.array(z.string()) });

type Summary = (data: JsonObject, paint: Paint) => readonly string[] | undefined;

/** Messages other than readings, by their name for `tail --feed`. */
const summaries: Readonly<Record<string, Summary>> = {
  asset(data, paint) {
    const { data: asset } = announced.safeParse(data);
    if (!asset) return undefined;
    const { type, vendor, model, firmware, status, status_reason, health = {} } = asset;
    const device = [vendor, model, firmware].flatMap((word) => word ?? []).join(' ');
    const missing = Object.entries(health)
      .filter(([, { state }]) => state === 'fails')
      .map(([item, { reason }]) => `${texts.not_delivered(item)}: ${reason ?? texts.unknown}`);
    const word = missing.length > 0 ? paint('warn', texts.degraded) : stateWord(status, paint);
    return [word, type, device, status_reason ?? '', ...missing];
  },
  asset_status(data, paint) {
    const { data: change } = changed.safeParse(data);
    return change && [stateWord(change.status, paint), change.reason ?? ''];
  },
  roster(data) {
    const { data: roster } = listed.safeParse(data);
    return roster && [texts.assets(roster.assets.length)];
  },
  task(data, paint) {
    const { data: task } = reported.safeParse(data);
    if (!task) return undefined;
    const { command_name, status, result } = task;
    const reason = result['error'];
    const colour = status === 'failed' ? 'bad' : status === 'completed' ? 'good' : 'warn';
    return [command_name, paint(colour, status), typeof reason === 'string' ? reason : pairs(result, paint)];
  },
  drops(data, paint) {
    const { data: report } = dropReport.safeParse(data);
    if (!report) return undefined;
    const rows = new Map<string, number>();
    for (const drop of report.drops) rows.set(drop.reason, (rows.get(drop.reason) ?? 0) + drop.rows);
    return [paint('warn', Array.from(rows, ([reason, count]) => `${count} ${reason}`).join(', '))];
  },
  alarm_picture(data) {
    const { data: picture } = pictured.safeParse(data);
    if (!picture) return undefined;
    const { alarms, jpeg, reason } = picture;
    const size = jpeg === null ? '' : texts.picture_size(Math.ceil((jpeg.length * 3) / 4 / 1_024));
    return [alarms.map(({ feed }) => feed).join(', '), reason ?? size];
  },
  telemetry(data, paint) {
    const { data: kit } = kitTelemetry.safeParse(data);
    return kit && kitFacts(kit, paint);
  },
};

/** The facts of a message, the most important first. */
export function messageFacts(feed: string, data: JsonObject, paint: Paint): readonly string[] {
  return (summaries[feed]?.(data, paint) ?? [pairs(data, paint)]).filter(Boolean);
}

function kitFacts(
  { wans, gateway, battery, battery_charging, location, clients, speedtest }: z.output<typeof kitTelemetry>,
  paint: Paint,
): readonly string[] {
  const links = (wans ?? []).map(({ name, status, latency_ms }) =>
    [name, status ? stateWord(status, paint) : paint('dim', texts.unknown), figure(latency_ms, ' ms')]
      .filter(Boolean)
      .join(' '),
  );
  return [
    links.join(', '),
    gateway
      ? [figure(gateway.cpu_pct, ' % CPU'), figure(gateway.mem_pct, texts.memory)].filter(Boolean).join(', ')
      : '',
    typeof battery === 'number' ? texts.battery(battery, battery_charging) : '',
    location
      ? (location.kit_location ?? `${location.latitude.toFixed(5)}, ${location.longitude.toFixed(5)}`)
      : '',
    clients ? texts.clients(clients.length) : '',
    speedtest
      ? [figure(speedtest.download_mbps, ' Mbit/s down'), figure(speedtest.upload_mbps, ' Mbit/s up')]
          .filter(Boolean)
          .join(', ')
      : '',
  ];
}

function figure(value: number | null | undefined, unit: string): string {
  return typeof value === 'number' ? `${Math.round(value)}${unit}` : '';
}

function stateWord(state: string, paint: Paint): string {
  return paint(state === 'offline' ? 'bad' : 'good', state);
}

/** `lat=52.1 lon=4.3`: without unknown and empty values, and without the time, which begins the line. */
function pairs(data: JsonObject, paint: Paint): string {
  return Object.entries(data)
    .filter(([key]) => key !== 'timestamp')
    .flatMap(([key, value]) => {
      const text = valueText(value);
      return text === '' ? [] : [`${paint('dim', `${key}=`)}${text}`];
    })
    .join(' ');
}

/** Lists of objects by their length; `tail --verbose` prints their content. */
function valueText(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'string') return value;
  if (!Array.isArray(value)) return JSON.stringify(value);
  const items: readonly unknown[] = value;
  if (items.some((item) => typeof item === 'object')) return String(items.length);
  return items.map(String).join(',');
}
