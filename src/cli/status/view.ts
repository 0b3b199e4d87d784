/** The report as a technician reads it. Pure: report in, lines out. */
import { z } from 'zod';
import { no_broker } from '../../kit/config/broker.ts';
import type { StatusReport } from '../../kit/local/api.ts';
import { type Paint, duration, oneLine, size, table } from '../terminal/shell.ts';
import { drainText } from '../terminal/progress.ts';
import { fold } from '../terminal/width.ts';
import { texts } from '../texts.ts';
import { localTime } from '../../platform/local-time.ts';
import { kitTelemetry } from '../../contract/kit.ts';

/** `columns`: sentences are folded and rows of tables cut to it; undefined: neither. */
export function statusLines(report: StatusReport, paint: Paint, columns?: number): readonly string[] {
  const folded = (lines: readonly string[], indent: number): readonly string[] =>
    lines.flatMap((line) => fold(line, columns, indent));
  return [
    ...folded([overall(report, paint)], 2),
    ...folded(
      report.degraded.map((reason) => `  ${paint('warn', '!')} ${reason}`),
      4,
    ),
    '',
    ...folded(uplinkLines(report.uplink, paint), value_column),
    ...folded(outboxLines(report.outbox, paint), value_column),
    ...laneLines(report.outbox, columns),
    ...folded(filesLines(report.files, paint), value_column),
    ...folded(kitLines(report, paint), value_column),
    ...driverLines(report.drivers, paint, columns),
    ...assetLines(report.assets, paint, columns),
    ...linkLines(report.links, paint, columns),
    ...taskLines(report, paint, columns),
  ];
}
const value_column = 9;

function overall(
  { kit_id, kit_name, version, uptime_s, degraded, uplink }: StatusReport,
  paint: Paint,
): string {
  const state =
    degraded.length > 0
      ? paint('warn', 'degraded')
      : uplink.state === 'connected'
        ? paint('good', 'ok')
        : paint('warn', 'offline, messages are buffered');
  const name = kit_name ? `${kit_name} (${kit_id})` : kit_id;
  return `${paint('bold', name)}: ${state}  ${paint('dim', `kit-connector ${version}, up ${duration(uptime_s)}`)}`;
}

function uplinkLines(uplink: StatusReport['uplink'], paint: Paint): readonly string[] {
  const { state, broker, protocol, since, rtt_ms, in_flight, next_try_ms, attempts, last_error } = uplink;
  if (broker === no_broker) {
    return [`${paint('bold', 'uplink')}   ${paint('warn', texts.no_broker)}; messages are buffered`];
  }
  const facts = [
    protocol ? `MQTT ${protocol}` : '',
    rtt_ms === null ? '' : `round trip ${Math.round(rtt_ms)} ms`,
    in_flight > 0 ? `${in_flight} in flight` : '',
    next_try_ms === null ? '' : `attempt ${attempts + 1} in ${duration(next_try_ms / 1000)}`,
  ].filter(Boolean);
  const colour = state === 'connected' ? 'good' : 'warn';
  return [
    `${paint('bold', 'uplink')}   ${paint(colour, state)} since ${localTime(since)}  ${broker}  ${paint('dim', facts.join(', '))}`,
    ...(uplink.detail ? [`         ${uplink.detail}`] : []),
    ...(last_error && state !== 'connected' ? [`         ${paint('bad', last_error)}`] : []),
  ];
}

function outboxLines(outbox: StatusReport['outbox'], paint: Paint): readonly string[] {
  const { state, detail, fault } = outbox.health;
  return [
    `${paint('bold', 'buffer')}   ${balance(outbox)}${outbox.balanced ? '' : `  ${paint('bad', 'counters do not match')}`}`,
    `         file ${size(outbox.file_bytes)}${outbox.oldest ? `, oldest message of ${localTime(outbox.oldest)}` : ''}${outbox.since ? `, counted since ${localTime(outbox.since)}` : ''}`,
    ...(state === 'ok'
      ? []
      : [`         ${paint('bad', `disk ${fault === 'full' ? fault : state}: ${detail}`)}`]),
    ...(outbox.drain ? [`         ${drainText(outbox.drain)}`] : []),
  ];
}

/** Files for the cloud, where there were any. */
export function filesLines(files: StatusReport['files'], paint: Paint): readonly string[] {
  if (!files || files.accepted === 0) return [];
  const { accepted, uploaded, kept, fault } = files;
  const dropped = Object.values(files.dropped).reduce((sum, count) => sum + count, 0);
  const counts = `accepted ${accepted} = uploaded ${uploaded} + kept ${kept.files} (${size(kept.bytes)}) + dropped ${dropped}`;
  return [`${paint('bold', 'files')}    ${counts}${fault === null ? '' : `  ${paint('warn', fault)}`}`];
}

function laneLines({ by_lane }: StatusReport['outbox'], columns: number | undefined): readonly string[] {
  const lanes = Object.entries(by_lane).filter(([, { rows, memory_rows }]) => rows + memory_rows > 0);
  return table(
    lanes.map(([lane, { rows, bytes, memory_rows }]) => [
      lane,
      `${rows} messages`,
      size(bytes),
      memory_rows > 0 ? `${memory_rows} in memory` : '',
    ]),
    ' '.repeat(value_column),
    columns,
  );
}

/** `accepted 120 = delivered 100 + buffered 15 + dropped 5 (thinned 5)`; until a cloud acknowledges, `delivered 100 to the broker`. */
export function balance(outbox: StatusReport['outbox']): string {
  const { accepted, buffered, quarantined } = outbox;
  const delivered = `${outbox.delivered}${outbox.delivered_to === 'broker' ? ' to the broker' : ''}`;
  const dropped = Object.entries(outbox.dropped).filter(([, rows]) => rows > 0);
  const sum = dropped.reduce((total, [, rows]) => total + rows, 0);
  const reasons = sum > 0 ? ` (${dropped.map(([reason, rows]) => `${reason} ${rows}`).join(', ')})` : '';
  const refused = quarantined > 0 ? ` + quarantined ${quarantined}` : '';
  return `accepted ${accepted} = delivered ${delivered} + buffered ${buffered}${refused} + dropped ${sum}${reasons}`;
}

function driverLines(
  drivers: StatusReport['drivers'],
  paint: Paint,
  columns: number | undefined,
): readonly string[] {
  const rows = drivers.flatMap(({ name, driver, state, since, reason, facts, devices = [] }) => {
    const failing = devices.filter((device) => device.reason !== null);
    // The line of a device that is not served has the reason.
    const shown = Object.entries(facts).filter(
      ([key, value]) => value !== null && failing.every((device) => device.name !== key),
    );
    const { short, long } = Object.groupBy(shown, ([, value]) =>
      `${value}`.includes(' ') ? 'long' : 'short',
    );
    return [
      {
        cells: [
          name,
          name === driver ? '' : driver,
          paint(state === 'up' ? 'good' : 'warn', state),
          `since ${localTime(since)}`,
          [reason, ...(short ?? []).map(([key, value]) => `${key}=${value}`)].filter(Boolean).join('  '),
        ],
        below: (long ?? []).flatMap(([key, value]) => fold(oneLine(`    ${key}: ${value}`), columns, 6)),
      },
      ...failing.map((device) => ({ cells: deviceRow(device, paint), below: [] })),
    ];
  });
  if (rows.length === 0) return section('drivers', 'none configured', [], { paint, columns });
  const lines = table(
    rows.map(({ cells }) => cells),
    '  ',
    columns,
  );
  return [paint('bold', 'drivers'), ...lines.flatMap((line, at) => [line].concat(rows[at]?.below ?? []))];
}

/** A device that is not served: what was tried, when the next attempt follows, and the answer. */
function deviceRow(
  {
    name,
    tried,
    state,
    reason,
    next_try_at,
  }: NonNullable<StatusReport['drivers'][number]['devices']>[number],
  paint: Paint,
): readonly string[] {
  const next = next_try_at === null ? '' : `next ${localTime(next_try_at)}`;
  return [`  ${name}`, tried, paint(state === 'rejected' ? 'bad' : 'warn', state), next, reason ?? ''];
}

/** The columns that a narrow terminal cuts come last. */
function assetLines(
  assets: StatusReport['assets'],
  paint: Paint,
  columns: number | undefined,
): readonly string[] {
  const missing = assets.map(missingOf);
  const rows = assets.map(({ key, name, type, status, reason, feeds }, at) => [
    name,
    type,
    missing[at]?.length === 0
      ? paint(status === 'online' ? 'good' : 'bad', status)
      : paint('warn', texts.degraded),
    [reason, ...Object.entries(feeds).map(([feed, { age_s }]) => `${feed} ${duration(age_s)} ago`)]
      .filter(Boolean)
      .join(', '),
    key,
  ]);
  const [title = '', ...lines] = section('assets', 'none yet', rows, { paint, columns });
  const below = missing.map((texts_of) =>
    texts_of.flatMap((text) => fold(`    ${paint('warn', '!')} ${text}`, columns, 6)),
  );
  return [title, ...lines.flatMap((line, at) => [line].concat(below[at] ?? []))];
}

/** What the asset does not deliver, each with the words of the device and the next try. */
function missingOf({ health = {} }: StatusReport['assets'][number]): readonly string[] {
  return Object.entries(health)
    .filter(([, { state }]) => state === 'fails')
    .map(([item, { reason, next_try_at }]) => {
      const next = next_try_at === null ? '' : `  ${texts.next_try(localTime(next_try_at))}`;
      return oneLine(`${texts.not_delivered(item)}: ${reason ?? texts.unknown}${next}`);
    });
}

function taskLines(
  { tasks, assets }: StatusReport,
  paint: Paint,
  columns: number | undefined,
): readonly string[] {
  const { pending, running, completed, failed, recent } = tasks;
  const counts = `${pending} pending, ${running} running, ${completed} completed, ${failed} failed`;
  const names = new Map(assets.map(({ id, name }) => [id, name]));
  const rows = recent.slice(0, recent_tasks_max).map((task) => taskRow(task, names, paint));
  return [`${paint('bold', 'tasks')}    ${counts}`, ...table(rows, '  ', columns)];
}
const recent_tasks_max = 5;

/** Time, asset, command, state and result. */
export function taskRow(
  task: StatusReport['tasks']['recent'][number],
  names: ReadonlyMap<string, string>,
  paint: Paint,
): readonly string[] {
  const colour = task.status === 'failed' ? 'bad' : task.status === 'completed' ? 'good' : 'warn';
  return [
    localTime(task.created_at),
    names.get(task.asset_id) ?? task.asset_id,
    task.command_name,
    paint(colour, task.status),
    taskOutcome(task),
  ];
}

/** The reason of a failure, else the output, else why it has no recorded end. */
export function taskOutcome({ result, note }: StatusReport['tasks']['recent'][number]): string {
  const reason = result['error'] ?? note;
  if (typeof reason === 'string') return reason;
  return Object.keys(result).length === 0 ? '' : JSON.stringify(result);
}

function section(
  title: string,
  otherwise: string,
  rows: readonly (readonly string[])[],
  { paint, columns }: { readonly paint: Paint; readonly columns: number | undefined },
): readonly string[] {
  if (rows.length === 0) return [`${paint('bold', title.padEnd(8))} ${otherwise}`];
  return [paint('bold', title), ...table(rows, '  ', columns)];
}

// Where the kit is and how full its battery is, each with the reason when it is unknown. Pure: report in, lines out.

const kitPart = z.looseObject(
  kitTelemetry.pick({ location: true, battery: true, battery_charging: true }).shape,
);

/** The lines `location` and `battery` of status. */
export function kitLines({ kit, location, drivers, video }: StatusReport, paint: Paint): readonly string[] {
  const { data } = kitPart.safeParse(kit);
  return [
    `${paint('bold', 'location')} ${locationText(data?.location, location, paint)}`,
    `${paint('bold', 'battery')}  ${batteryText(data, drivers, paint)}`,
    ...(video && (video.viewers > 0 || video.metered_bytes_today > 0)
      ? [`${paint('bold', 'video')}    ${videoText(video)}`]
      : []),
  ];
}

/** Viewers of the cloud, and what those of today have cost. */
function videoText({
  viewers,
  metered_seconds_today,
  metered_bytes_today,
}: NonNullable<StatusReport['video']>): string {
  const mb = (metered_bytes_today / 1_000_000).toFixed(1);
  return `${viewers} ${viewers === 1 ? 'viewer' : 'viewers'}; today ${mb} MB in ${metered_seconds_today} s over metered links`;
}

function locationText(
  known: z.output<typeof kitPart>['location'],
  view: StatusReport['location'],
  paint: Paint,
): string {
  const reason = view?.reason ?? null;
  if (!known) return `${paint('warn', 'unknown')}  ${reason ?? texts.no_position}`;
  const { latitude, longitude, altitude, source, stale, kit_location } = known;
  const facts = [
    `${latitude.toFixed(5)}, ${longitude.toFixed(5)}`,
    heightText(altitude),
    kit_location ?? 'no city near',
    stale ? paint('warn', `${source}, stale`) : paint('good', source),
    source === 'manual' ? '' : ageText(view?.age_s),
    view?.driver ? `driver ${view.driver}` : '',
    reason ? paint('dim', reason) : '',
  ];
  return facts.filter(Boolean).join('  ');
}

function heightText(altitude: number | null | undefined): string {
  return typeof altitude === 'number' ? `${Math.round(altitude)} m above the ellipsoid` : '';
}

function ageText(age_s: number | null | undefined): string {
  return typeof age_s === 'number' ? `${duration(age_s)} old` : 'age unknown';
}

function batteryText(
  known: z.output<typeof kitPart> | undefined,
  drivers: StatusReport['drivers'],
  paint: Paint,
): string {
  const { battery, battery_charging } = known ?? {};
  if (typeof battery === 'number') {
    const charging =
      battery_charging === true ? ', charging' : battery_charging === false ? ', not charging' : '';
    return `${Math.round(battery)} %${charging}`;
  }
  return `${paint('warn', 'unknown')}  ${batteryReason(drivers)}`;
}

function batteryReason(drivers: StatusReport['drivers']): string {
  const power = drivers.find(({ driver }) => driver === 'power');
  if (!power) return texts.no_power_driver;
  const fact = power.facts['reason'];
  if (typeof fact === 'string') return fact;
  return power.reason ?? texts.no_battery;
}

// Formats the links of the kit with their status and its reason. Pure.

type LinkReport = NonNullable<StatusReport['links']>[number];

/** A row for each link, what is unknown left empty, and below it the reason where there is one. */
export function linkLines(links: StatusReport['links'], paint: Paint, columns?: number): readonly string[] {
  if (!links || links.length === 0) return [];
  const rows = table(
    links.map((link) => row(link, paint)),
    indent,
    columns,
  );
  const lines = [paint('bold', 'links')];
  for (const [at, { reason }] of links.entries()) {
    lines.push(rows[at] ?? '');
    if (reason !== null)
      lines.push(...fold(`${indent}  ${paint('dim', reason)}`, columns, indent.length + 2));
  }
  return lines;
}

const indent = '  ';

function row(link: LinkReport, paint: Paint): readonly string[] {
  return [
    link.name,
    link.type ?? '',
    statusText(link, paint),
    answers(link),
    pair(link.rx_bps, link.tx_bps, rate),
    today(link),
    [link.isp, link.ip].flatMap((text) => text ?? []).join(' '),
  ];
}

function statusText({ status }: LinkReport, paint: Paint): string {
  if (!status) return paint('dim', 'unknown');
  return paint(status === 'offline' ? 'bad' : 'good', status);
}

function answers({ latency_ms, packet_loss_pct }: LinkReport): string {
  const latency = measured(latency_ms, (ms) => `${Math.round(ms)} ms`);
  const loss = measured(packet_loss_pct, (pct) => `${pct.toFixed(1)} % lost`);
  return [latency, loss].filter(Boolean).join(', ');
}

function today({ usage }: LinkReport): string {
  const used = pair(usage?.today_rx_gb, usage?.today_tx_gb, (gb) =>
    gb < 1 ? `${Math.round(gb * 1e3)} MB` : `${gb.toFixed(1)} GB`,
  );
  return used && `today ${used}`;
}

function pair(
  rx: number | null | undefined,
  tx: number | null | undefined,
  show: (value: number) => string,
): string {
  return [measured(rx, (value) => `down ${show(value)}`), measured(tx, (value) => `up ${show(value)}`)]
    .filter(Boolean)
    .join(', ');
}

function measured(value: number | null | undefined, show: (value: number) => string): string {
  return value === null || value === undefined ? '' : show(value);
}

function rate(bps: number): string {
  return bps < 1e6 ? `${Math.round(bps / 1e3)} kbit/s` : `${(bps / 1e6).toFixed(1)} Mbit/s`;
}
