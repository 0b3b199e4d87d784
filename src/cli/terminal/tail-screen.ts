/** Prints published messages on a terminal, with the progress of the backlog below them. */
import type { StatusReport, TailLine, TailMessage } from '../../kit/local/api.ts';
import { every } from '../../platform/time.ts';
import { columnsOf, type Paint, painter, say, type Shell } from './shell.ts';
import { drainText, LiveLine } from './progress.ts';
import { printable, printableTexts } from '../../platform/foreign-text.ts';
import { texts } from '../texts.ts';
import { cut, padTo, widthOf } from './width.ts';
import { localTime } from '../../platform/local-time.ts';
import type { JsonObject } from '../../contract/json.ts';
import { assetStatus } from '../../contract/assets.ts';
import { kitTelemetry } from '../../contract/kit.ts';
import { dropReport } from '../../contract/drops.ts';
import { taskStatus } from '../../contract/tasks.ts';
import { z } from 'zod';

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

const look_every_ms = 2_000;

export interface TailScreenOptions {
  /** Whole messages, including command definitions. */
  readonly verbose?: true;
}

interface TailScreen {
  readonly print: (line: TailLine) => void;
  /** For other output to the same terminal: the log. */
  readonly above: (write: () => void) => void;
  /** Requests the report once for the names of assets, and repeatedly on a terminal for the backlog. */
  readonly follow: (ask: () => Promise<StatusReport>) => Promise<void>;
}

/** Short lines on a terminal; whole ones with `verbose` or without a terminal. */
export function tailScreen(shell: Shell, { verbose }: TailScreenOptions): TailScreen {
  const paint = painter(shell);
  const live = new LiveLine(shell.out);
  const lines = new TailLines(paint);
  const isShort = shell.out.isTTY === true && !verbose;
  const textOf = (line: TailLine): string | undefined =>
    isShort ? lines.line(line, columnsOf(shell.out)) : tailText(line, paint);
  return {
    print(line) {
      const text = textOf(line);
      if (text !== undefined) live.above(() => say(shell, text));
    },
    above: (write) => live.above(write),
    async follow(ask) {
      if (shell.out.isTTY !== true) return;
      const look = async (): Promise<void> => {
        const { assets, outbox } = await ask();
        lines.learn(assets);
        live.show(outbox.drain ? drainText(outbox.drain) : '');
      };
      // If the daemon does not answer, the message stream ends too, or the next request succeeds.
      const tryLook = async (): Promise<void> => look().catch(() => live.show(''));
      every(look_every_ms, shell.signal, () => void tryLook());
      shell.signal.addEventListener('abort', () => live.show(''), { once: true });
      await tryLook();
    },
  };
}

// Formats published messages as lines that fit the width of a terminal.

const feed_columns = 12;
/** Names of assets are cut to this, or to a quarter of the width. */
const subject_columns_max = 24;
/** Command definitions are long, and the same at each start. */
const verbose_only: ReadonlySet<string> = new Set(['commands']);

interface Named {
  readonly id: string;
  readonly name: string;
}

/** Formats lines; caches the names of assets, since task reports carry only the id. */
export class TailLines {
  readonly #paint: Paint;
  /** Bounded by the number of assets of a kit, present and removed. */
  readonly #names = new Map<string, string>();
  #subject_columns = 0;

  constructor(paint: Paint) {
    this.#paint = paint;
  }

  learn(assets: Iterable<Named>): void {
    for (const { id, name } of assets) this.#names.set(id, name);
  }

  /** `12:30:01  Falcon  gps  lat=52.1 lon=4.3`; undefined for what only `--verbose` shows. */
  line(line: TailLine, columns: number | undefined): string | undefined {
    if (line.kind === 'skipped') return cut(this.#paint('warn', texts.skipped(line.lines)), columns);
    if (verbose_only.has(line.feed)) return undefined;
    if (line.asset) this.learn([line.asset]);
    const { time, feed, data } = line;
    const paint = this.#paint;
    const facts = data === null ? [texts.removed] : messageFacts(feed, printableTexts(data), paint);
    const shown = [
      paint('dim', localTime(time)),
      paint('bold', this.#subject(line, columns)),
      paint('name', padTo(printable(feed), feed_columns)),
      facts.join('  '),
    ];
    return cut(shown.join('  '), columns);
  }

  /** Padded to the longest so far, so that columns are aligned. */
  #subject({ asset, feed, channel, data }: TailMessage, columns = Infinity): string {
    const asset_id = feed === 'task' ? data?.['asset_id'] : undefined;
    const name = asset?.name ?? (typeof asset_id === 'string' ? this.#names.get(asset_id) : undefined);
    const subject = printable(name ?? (feed === 'task' ? texts.task : (channel.split('/')[1] ?? texts.kit)));
    const max = Math.min(subject_columns_max, Math.floor(columns / 4));
    this.#subject_columns = Math.min(max, Math.max(this.#subject_columns, widthOf(subject)));
    return padTo(subject, this.#subject_columns);
  }
}

// A published message as one whole line of text.

/** `12:30:01  Falcon  gps  lat=52.1 lon=4.3`: the whole message, without a limit of width. */
export function tailText(line: TailLine, paint: Paint): string {
  if (line.kind === 'skipped') return paint('warn', texts.skipped(line.lines));
  const facts = line.data === null ? texts.cleared : printable(factsText(line.data));
  return [
    paint('dim', localTime(line.time)),
    paint('bold', subjectOf(line)),
    paint('name', printable(line.feed)),
    facts,
  ].join('  ');
}

function subjectOf({ asset, channel }: TailMessage): string {
  if (asset) return printable(asset.name);
  return printable(channel.split('/')[1] ?? texts.kit);
}

function factsText(data: NonNullable<TailMessage['data']>): string {
  return Object.entries(data)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' ');
}
