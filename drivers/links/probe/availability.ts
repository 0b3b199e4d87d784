/** Keeps the availability of all links over restarts. Time without observation counts as neither up nor down. */
import { z } from 'zod';
import { hasCode, messageOf } from '../../../src/platform/errors.ts';
import { earliest_plausible_ms, every } from '../../../src/platform/time.ts';
import { texts } from '../texts.ts';
import { KeptFile } from '../kept-file.ts';
import type { DriverLog } from '../../../src/toolkit/driver/driver.ts';
import { readTextUpToSync, small_bytes_max, table_bytes_max } from '../../../src/platform/bounded-file.ts';

export const window_minutes = 1_440;
export const minute_ms = 60_000;

/** Observed time. */
interface Times {
  readonly up_ms: number;
  readonly down_ms: number;
}

/** So many minutes in a row with the same times: `[minutes, up_ms, down_ms]`. Most days are a handful of these. */
type Run = [minutes: number, up_ms: number, down_ms: number];

/** Minutes are counted on any even scale, negative numbers too; adding to a later one moves the window on. */
export class DayWindow {
  readonly #up_ms = new Uint16Array(window_minutes);
  readonly #down_ms = new Uint16Array(window_minutes);
  #newest: number;

  constructor(minute: number) {
    this.#newest = minute;
  }

  /** Adds observed time to a minute; what is older than the window, or more than a minute holds, is left out. */
  add(minute: number, { up_ms, down_ms }: Times): void {
    this.moveTo(minute);
    if (minute <= this.#newest - window_minutes) return;
    const at = slot(minute);
    const room_ms = minute_ms - (this.#up_ms[at] ?? 0) - (this.#down_ms[at] ?? 0);
    const up_fits_ms = Math.min(up_ms, room_ms);
    this.#up_ms[at] = (this.#up_ms[at] ?? 0) + up_fits_ms;
    this.#down_ms[at] = (this.#down_ms[at] ?? 0) + Math.min(down_ms, room_ms - up_fits_ms);
  }

  /** Time that was added as the opposite: `up_ms` of it was up, `down_ms` of it was down. */
  correct(minute: number, { up_ms, down_ms }: Times): void {
    if (minute <= this.#newest - window_minutes || minute > this.#newest) return;
    const at = slot(minute);
    const [up_before_ms, down_before_ms] = [this.#up_ms[at] ?? 0, this.#down_ms[at] ?? 0];
    const moved_ms = Math.min(up_ms, down_before_ms) - Math.min(down_ms, up_before_ms);
    this.#up_ms[at] = up_before_ms + moved_ms;
    this.#down_ms[at] = down_before_ms - moved_ms;
  }

  /** The minute is the newest now; minutes that were skipped were not observed. */
  moveTo(minute: number): void {
    const skipped = Math.min(minute - this.#newest, window_minutes);
    for (let back = 0; back < skipped; back += 1) {
      this.#up_ms[slot(minute - back)] = 0;
      this.#down_ms[slot(minute - back)] = 0;
    }
    this.#newest = Math.max(this.#newest, minute);
  }

  /** Observed time of the whole window, milliseconds. */
  totals(): Times {
    return { up_ms: sum(this.#up_ms), down_ms: sum(this.#down_ms) };
  }

  /** All minutes, oldest first, the newest last. */
  runs(): Run[] {
    const runs: Run[] = [];
    for (let back = window_minutes - 1; back >= 0; back -= 1) {
      const at = slot(this.#newest - back);
      const [up_ms, down_ms] = [this.#up_ms[at] ?? 0, this.#down_ms[at] ?? 0];
      const last = runs.at(-1);
      if (last !== undefined && last[1] === up_ms && last[2] === down_ms) last[0] += 1;
      else runs.push([1, up_ms, down_ms]);
    }
    return runs;
  }

  /** Adds runs whose last minute is `newest`. */
  addRuns(runs: readonly Run[], newest: number): void {
    let minute = newest - runs.reduce((minutes, [count]) => minutes + count, 0);
    for (const [count, up_ms, down_ms] of runs) {
      for (let passed = 0; passed < count; passed += 1) {
        minute += 1;
        if (up_ms + down_ms > 0) this.add(minute, { up_ms, down_ms });
      }
    }
  }
}

function slot(minute: number): number {
  return ((minute % window_minutes) + window_minutes) % window_minutes;
}

function sum(values: Uint16Array): number {
  return values.reduce((total, value) => total + value, 0);
}

/** Notes further apart than this leave the time between them unobserved: the process was stopped or asleep. */
const gap_max_ms = 150_000;
/** Less observed time than this is not enough. */
const observed_min_ms = 60_000;
const write_every_ms = 60_000;

interface LinkDay {
  readonly window: DayWindow;
  noted_ms: number;
  /** State that was noted last, and the moment from which on it was noted without a gap. */
  reachable: boolean | null;
  from_ms: number;
}

/** Moments as the driver knows them at one reading. */
export interface Moment {
  /** `performance.now()`: never steps. */
  readonly mono_ms: number;
  /** `Date.now()`: may step. */
  readonly wall_ms: number;
}

/** Which run of the machine this is, and how long it has been up at `performance.now() === 0`. */
export interface Boot {
  readonly id: string;
  readonly offset_ms: number;
}

interface AvailabilitySpec {
  /** Where the window is kept over restarts. */
  readonly file: string;
  readonly boot: Boot;
  /** Writes at most once a minute until it aborts. */
  readonly signal: AbortSignal;
  readonly log: DriverLog;
}

/** The state of a link since the last note of it. */
interface NotedLink {
  readonly link: string;
  /** Null: not observed. */
  readonly reachable: boolean | null;
  readonly at: Moment;
  /** A change came at this moment, which may be before the last note; what was noted otherwise is corrected. */
  readonly since_ms?: number | undefined;
}

/**
 * The share of the observed time with an answer, for each link, over the last 24 h. Minutes are counted from the boot of the machine on
 * the monotonic clock, so no jump of the time of day moves them. What an earlier run of the machine has noted is placed by the time of
 * day, once that can be trusted both then and now; until then, and permanently if it never can be, it does not count.
 */
export class Availability {
  readonly #file: KeptFile;
  readonly #boot: Boot;
  readonly #days = new Map<string, LinkDay>();
  /** Runs of the machine whose place in time is not known yet. */
  #unplaced: readonly BootRecord[];
  #latest: Moment | null = null;
  #changed = false;

  /** Reads what was kept. */
  constructor(spec: AvailabilitySpec) {
    const { file, log, signal, boot } = spec;
    const sentences = { not_saved: texts.availability_not_saved, saved: texts.availability_saved };
    this.#file = new KeptFile(file, log, sentences);
    this.#boot = boot;
    this.#unplaced = readKept(spec);
    every(write_every_ms, signal, () => void this.save());
  }

  note({ link, reachable, at, since_ms }: NotedLink): void {
    this.#latest = at;
    this.#changed = true;
    this.#place(at);
    const day = this.#dayOf(link, at.mono_ms);
    const { noted_ms, from_ms, reachable: was } = day;
    const hasGap = at.mono_ms - noted_ms > gap_max_ms;
    const isChange = was !== reachable || hasGap;
    const began_ms =
      hasGap || since_ms === undefined ? noted_ms : Math.min(Math.max(since_ms, from_ms), at.mono_ms);
    day.noted_ms = at.mono_ms;
    day.reachable = reachable;
    if (isChange) day.from_ms = hasGap ? at.mono_ms : began_ms;
    if (reachable === null || hasGap) return;
    const { offset_ms } = this.#boot;
    const add = (from: number, to: number, state: boolean): void =>
      spread(from + offset_ms, to + offset_ms, (minute, span_ms) =>
        day.window.add(minute, timeOf(state, span_ms)),
      );
    if (!isChange || was === null) {
      add(isChange ? Math.max(began_ms, noted_ms) : noted_ms, at.mono_ms, reachable);
      return;
    }
    add(noted_ms, Math.max(began_ms, noted_ms), was);
    spread(began_ms + offset_ms, noted_ms + offset_ms, (minute, span_ms) =>
      day.window.correct(minute, timeOf(reachable, span_ms)),
    );
    add(Math.max(began_ms, noted_ms), at.mono_ms, reachable);
  }

  /** 0 to 100; null before anything was observed. */
  pct(link: string): number | null {
    const { up_ms, down_ms } = this.#days.get(link)?.window.totals() ?? { up_ms: 0, down_ms: 0 };
    const observed_ms = up_ms + down_ms;
    return observed_ms < observed_min_ms ? null : (100 * up_ms) / observed_ms;
  }

  /** Writes what changed; resolves when it is on the disk, or was refused, which is logged. */
  async save(): Promise<void> {
    const boots = this.#takeChanges();
    if (boots !== null) await this.#file.write(JSON.stringify({ format: 1, boots }));
    await this.#file.idle();
  }

  #takeChanges(): readonly BootRecord[] | null {
    const at = this.#latest;
    if (!this.#changed || at === null) return null;
    this.#changed = false;
    const minute = this.#minuteOf(at.mono_ms);
    for (const { window } of this.#days.values()) window.moveTo(minute);
    for (const [link, { window }] of this.#days) if (!isObserved(window)) this.#days.delete(link);
    const links = [...this.#days].map(([name, { window }]) => ({ name, runs: window.runs() }));
    const boot = {
      boot_id: this.#boot.id,
      minute,
      wall_ms: trustedTime(at),
      links: links.slice(0, links_max),
    };
    return [boot, ...this.#unplaced].slice(0, boots_max);
  }

  /** Puts what was noted before where it belongs, as soon as that is known. */
  #place(at: Moment): void {
    if (this.#unplaced.length === 0) return;
    const now = { minute: this.#minuteOf(at.mono_ms), wall_ms: trustedTime(at) };
    this.#unplaced = this.#unplaced.filter((record) => {
      const last = lastMinute(record, this.#boot.id, now);
      if (last === 'unknown yet') return true;
      if (last === 'never known') return false;
      for (const { name, runs } of record.links) this.#dayOf(name, at.mono_ms).window.addRuns(runs, last);
      return false;
    });
  }

  #minuteOf(mono_ms: number): number {
    return Math.floor((mono_ms + this.#boot.offset_ms) / minute_ms);
  }

  #dayOf(link: string, mono_ms: number): LinkDay {
    const known = this.#days.get(link);
    if (known !== undefined) return known;
    const day = {
      window: new DayWindow(this.#minuteOf(mono_ms)),
      noted_ms: mono_ms,
      reachable: null,
      from_ms: mono_ms,
    };
    this.#days.set(link, day);
    return day;
  }
}

function readKept({ file, log }: AvailabilitySpec): readonly BootRecord[] {
  try {
    return readRecord(file);
  } catch (error) {
    log.warn({ file, reason: messageOf(error) }, texts.availability_unreadable);
    return [];
  }
}

function trustedTime({ wall_ms }: Moment): number | null {
  return wall_ms >= earliest_plausible_ms ? wall_ms : null;
}

function isObserved(window: DayWindow): boolean {
  const { up_ms, down_ms } = window.totals();
  return up_ms + down_ms > 0;
}

interface Now {
  readonly minute: number;
  readonly wall_ms: number | null;
}

/** Which minute of this boot the last minute of a record is; negative for one of an earlier boot. */
function lastMinute(record: BootRecord, boot_id: string, now: Now): number | 'unknown yet' | 'never known' {
  if (record.boot_id === boot_id) return record.minute <= now.minute ? record.minute : 'never known';
  if (record.wall_ms === null) return 'never known';
  if (now.wall_ms === null) return 'unknown yet';
  const last = now.minute - Math.ceil((now.wall_ms - record.wall_ms) / minute_ms);
  // It ended before this boot began: else one of the two clocks was wrong.
  return last < 0 && last > now.minute - window_minutes ? last : 'never known';
}

function timeOf(reachable: boolean, span_ms: number): Times {
  return reachable ? { up_ms: span_ms, down_ms: 0 } : { up_ms: 0, down_ms: span_ms };
}

/** Shares a span of time out to the minutes that it touches. */
function spread(from_ms: number, to_ms: number, take: (minute: number, span_ms: number) => void): void {
  let at_ms = Math.round(from_ms);
  const end_ms = Math.round(to_ms);
  while (at_ms < end_ms) {
    const minute = Math.floor(at_ms / minute_ms);
    const until_ms = Math.min(end_ms, (minute + 1) * minute_ms);
    take(minute, until_ms - at_ms);
    at_ms = until_ms;
  }
}

const duration_ms = z.int().min(0).max(minute_ms);
const run = z.tuple([z.int().min(1).max(window_minutes), duration_ms, duration_ms]);

/** Links of one kit that are remembered. */
const links_max = 64;

/** Boots that are kept: this one, and boots without a known time before the clock is set. */
const boots_max = 4;

const bootRecord = z.strictObject({
  boot_id: z.string(),
  /** Minute since that boot which the last minute of every link is. */
  minute: z.int(),
  /** Time of day at that minute; null: the clock was not set. */
  wall_ms: z.number().nullable(),
  links: z.array(z.strictObject({ name: z.string(), runs: z.array(run).max(window_minutes) })).max(links_max),
});
type BootRecord = z.output<typeof bootRecord>;

const availabilityRecord = z.strictObject({
  format: z.literal(1),
  boots: z.array(bootRecord).max(boots_max),
});

/** Empty when there is no file yet. Throws when it cannot be read or is not what was written. */
function readRecord(file: string): readonly BootRecord[] {
  let text: string;
  try {
    text = readTextUpToSync(file, table_bytes_max);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return [];
    throw error;
  }
  return availabilityRecord.parse(JSON.parse(text)).boots;
}

/** From the kernel; two boots of a kernel without this identifier count as different. */
export function readBoot(proc: string): Boot {
  try {
    const id = readTextUpToSync(`${proc}/sys/kernel/random/boot_id`, small_bytes_max).trim();
    const uptime_s = Number.parseFloat(readTextUpToSync(`${proc}/uptime`, small_bytes_max));
    return { id, offset_ms: uptime_s * 1_000 - performance.now() };
  } catch {
    return { id: `unknown-${process.pid}-${Date.now()}`, offset_ms: 0 };
  }
}
