/** Reads the batteries that feed the gateway from /sys/class/power_supply. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { within } from '../../src/platform/time.ts';
import { type Battery, batteryOf, kitReading, type SupplyTexts } from './batteries.ts';
import { type Reading, unknown_reading } from './reading.ts';

/** What a battery told last counts for this long while its driver has no answer (ENODATA, EAGAIN, ENODEV). */
export const keep_ms = 60_000;
/** A fuel gauge behind a stuck bus may keep a reader waiting. */
const read_timeout_ms = 2_000;
const supplies_max = 16;

const attributes = [
  'capacity',
  'status',
  'energy_now',
  'energy_full',
  'charge_now',
  'charge_full',
  'voltage_now',
] as const satisfies readonly (keyof SupplyTexts)[];

/** Something that was told at `told_ms` of the monotonic clock. */
interface Held<T> {
  readonly value: T;
  readonly told_ms: number;
}

interface Kept {
  readonly battery: Battery;
  readonly percent: Held<number> | undefined;
  readonly status: Held<string> | undefined;
}

/** Remembers what each battery told last, so that a gauge which is busy for a moment makes no gap. */
export class SysfsBatteries {
  readonly #dir: string;
  readonly #kept = new Map<string, Kept>();
  /** A reading that has not come back. No second one is sent after it: each blocks a thread of the pool. */
  #pending: Promise<readonly SupplyTexts[]> | undefined;

  constructor(sys_root: string) {
    this.#dir = join(sys_root, 'class/power_supply');
  }

  /** The batteries as they are at `now_ms` of the monotonic clock. Never rejects. */
  async read(now_ms: number, signal: AbortSignal): Promise<Reading> {
    this.#pending ??= readSupplies(this.#dir, this.#kept).finally(() => {
      this.#pending = undefined;
    });
    const supplies = await within(read_timeout_ms, this.#pending, signal);
    if (supplies) this.#forgetAllBut(supplies);
    const told = supplies?.map(batteryOf) ?? [...this.#kept.values()].map(({ battery }) => mute(battery));
    if (told.length === 0) {
      const reason = supplies ? `no battery in ${this.#dir}` : `${this.#dir} does not answer`;
      return { ...unknown_reading, reason };
    }
    return kitReading(told.map((battery) => this.#keep(battery, now_ms)));
  }

  /** What was pulled out is no battery of the kit any more. */
  #forgetAllBut(supplies: readonly SupplyTexts[]): void {
    for (const name of this.#kept.keys()) {
      if (!supplies.some((each) => each.name === name)) this.#kept.delete(name);
    }
  }

  #keep(told: Battery, now_ms: number): Battery {
    const last = this.#kept.get(told.name);
    const percent = hold(told.percent, last?.percent, now_ms);
    const status = hold(told.status, last?.status, now_ms);
    const battery = {
      ...told,
      percent: percent?.value ?? null,
      status: status?.value ?? null,
      ...fullOf(told, last?.battery ?? told),
    };
    this.#kept.set(told.name, { battery, percent, status });
    return battery;
  }
}

/** What a full battery holds does not change from one minute to the next. */
function fullOf(told: Battery, last: Battery): Pick<Battery, 'energy_full_uwh' | 'charge_full_uah'> {
  return {
    energy_full_uwh: told.energy_full_uwh ?? last.energy_full_uwh,
    charge_full_uah: told.charge_full_uah ?? last.charge_full_uah,
  };
}

/** What is told now, else what was told last if that is not too long ago. */
function hold<T>(told: T | null, last: Held<T> | undefined, now_ms: number): Held<T> | undefined {
  if (told !== null) return { value: told, told_ms: now_ms };
  return last && now_ms - last.told_ms < keep_ms ? last : undefined;
}

/** The texts of each battery of the gateway itself. `known` stay batteries while even their type cannot be read. */
async function readSupplies(
  dir: string,
  known: ReadonlyMap<string, unknown>,
): Promise<readonly SupplyTexts[]> {
  const names = await readdir(dir).catch(() => []);
  const supplies: SupplyTexts[] = [];
  for (const name of names.toSorted((a, b) => a.localeCompare(b)).slice(0, supplies_max)) {
    const type = await readText(join(dir, name, 'type'));
    const isBattery = type === null ? known.has(name) : type === 'Battery';
    if (!isBattery || !(await feedsGateway(join(dir, name)))) continue;
    const texts = await Promise.all(
      attributes.map(async (each) => [each, await readText(join(dir, name, each))] as const),
    );
    supplies.push({ ...no_texts, ...Object.fromEntries(texts), name });
  }
  return supplies;
}

const no_texts = {
  capacity: null,
  status: null,
  energy_now: null,
  energy_full: null,
  charge_now: null,
  charge_full: null,
  voltage_now: null,
} as const;

/** False for the battery of a mouse or a pen, and for a bay that is empty. */
async function feedsGateway(dir: string): Promise<boolean> {
  if ((await readText(join(dir, 'scope'))) === 'Device') return false;
  return (await readText(join(dir, 'present'))) !== '0';
}

async function readText(path: string): Promise<string | null> {
  try {
    return (await readFile(path, 'utf8')).trim();
  } catch {
    return null;
  }
}

/** The battery while nothing of it can be read. */
function mute(battery: Battery): Battery {
  return { ...battery, percent: null, status: null, voltage_v: null };
}
