/** Reads the batteries that feed the gateway from /sys/class/power_supply. */
import { join } from 'node:path';
import { readNames, readText } from '../../src/toolkit/device/system-files.ts';
import { within } from '../../src/platform/time.ts';
import { keep_ms, type Reading, unknown_reading, plausiblePercent, numberOf } from './reading.ts';
import { texts } from './texts.ts';

/** A fuel gauge behind a stuck bus may block its reader. */
const read_timeout_ms = 2_000;
const supplies_max = 16;

/** A value read at `read_ms` of the monotonic clock. */
interface Held<T> {
  readonly value: T;
  readonly read_ms: number;
}

interface Kept {
  readonly battery: Battery;
  readonly percent: Held<number> | undefined;
  readonly status: Held<string> | undefined;
}

/** Keeps the last values of each battery, so that a gauge that is busy for a moment causes no gap. */
export class SysfsBatteries {
  readonly #dir: string;
  readonly #kept = new Map<string, Kept>();
  /** A read that has not returned. No second one is started: each blocks a thread of the pool. */
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
    const current =
      supplies?.map(batteryOf) ?? [...this.#kept.values()].map(({ battery }) => unreadable(battery));
    if (current.length === 0) {
      const reason = supplies ? texts.no_battery(this.#dir) : texts.sysfs_timeout(this.#dir);
      return { ...unknown_reading, reason };
    }
    return kitReading(current.map((battery) => this.#keep(battery, now_ms)));
  }

  /** Forgets batteries that were removed. */
  #forgetAllBut(supplies: readonly SupplyTexts[]): void {
    for (const name of this.#kept.keys()) {
      if (!supplies.some((each) => each.name === name)) this.#kept.delete(name);
    }
  }

  #keep(current: Battery, now_ms: number): Battery {
    const last = this.#kept.get(current.name);
    const percent = hold(current.percent, last?.percent, now_ms);
    const status = hold(current.status, last?.status, now_ms);
    const battery = {
      ...current,
      percent: percent?.value ?? null,
      status: status?.value ?? null,
      ...fullOf(current, last?.battery ?? current),
    };
    this.#kept.set(current.name, { battery, percent, status });
    return battery;
  }
}

/** The full capacity does not change from one minute to the next, so the last value is kept. */
function fullOf(current: Battery, last: Battery): Pick<Battery, 'energy_full_uwh' | 'charge_full_uah'> {
  return {
    energy_full_uwh: current.energy_full_uwh ?? last.energy_full_uwh,
    charge_full_uah: current.charge_full_uah ?? last.charge_full_uah,
  };
}

/** The current value, else the last one while it is recent. */
function hold<T>(current: T | null, last: Held<T> | undefined, now_ms: number): Held<T> | undefined {
  if (current !== null) return { value: current, read_ms: now_ms };
  return last && now_ms - last.read_ms < keep_ms ? last : undefined;
}

/** The texts of each battery of the gateway itself. `known` ones remain batteries while their type cannot be read. */
async function readSupplies(
  dir: string,
  known: ReadonlyMap<string, unknown>,
): Promise<readonly SupplyTexts[]> {
  const names = (await readNames(dir)) ?? [];
  const supplies: SupplyTexts[] = [];
  for (const name of names.toSorted((a, b) => a.localeCompare(b)).slice(0, supplies_max)) {
    const type = await readText(join(dir, name, 'type'));
    const isBattery = type === undefined ? known.has(name) : type === 'Battery';
    if (!isBattery || !(await feedsGateway(join(dir, name)))) continue;
    const values = await Promise.all(
      Object.keys(no_values).map(
        async (each) => [each, (await readText(join(dir, name, each))) ?? null] as const,
      ),
    );
    supplies.push({ ...no_values, ...Object.fromEntries(values), name });
  }
  return supplies;
}

/** The files of one power supply that are read. */
const no_values = {
  capacity: null,
  status: null,
  energy_now: null,
  energy_full: null,
  charge_now: null,
  charge_full: null,
  voltage_now: null,
} as const;

/** False for the battery of a mouse or a pen and for an empty bay. */
async function feedsGateway(dir: string): Promise<boolean> {
  if ((await readText(join(dir, 'scope'))) === 'Device') return false;
  return (await readText(join(dir, 'present'))) !== '0';
}

/** The battery while none of its values can be read. */
function unreadable(battery: Battery): Battery {
  return { ...battery, percent: null, status: null, voltage_v: null };
}

/** Texts of the files of one power supply; null: the kernel has no answer to this now, or never. */
interface SupplyTexts extends Readonly<Record<keyof typeof no_values, string | null>> {
  readonly name: string;
}

/** One battery, read. */
interface Battery {
  readonly name: string;
  readonly percent: number | null;
  /** As the kernel reports it; `Unknown` is null. */
  readonly status: string | null;
  readonly energy_full_uwh: number | null;
  readonly charge_full_uah: number | null;
  readonly voltage_v: number | null;
}

export function batteryOf(supply: SupplyTexts): Battery {
  const status = supply.status?.trim() ?? '';
  const voltage_uv = numberOf(supply.voltage_now);
  return {
    name: supply.name,
    percent: percentOf(supply),
    status: status === '' || status === 'Unknown' ? null : status,
    energy_full_uwh: positive(numberOf(supply.energy_full)),
    charge_full_uah: positive(numberOf(supply.charge_full)),
    voltage_v: voltage_uv === null || voltage_uv <= 0 ? null : Math.round(voltage_uv / 10_000) / 100,
  };
}

/** The battery of the kit: weighted by energy where all batteries report it, else by charge, else the plain mean. */
export function kitReading(batteries: readonly Battery[]): Reading {
  const readable = batteries.filter((each) => each.percent !== null);
  const unreadable = batteries.filter((each) => each.percent === null).map((each) => each.name);
  const voltages = batteries.map((each) => each.voltage_v);
  return {
    ...unknown_reading,
    percent: weighted(readable),
    charging: chargingOf(batteries),
    voltage_v: voltages.length === 1 ? (voltages[0] ?? null) : null,
    state: batteries.map((each) => each.status ?? 'Unknown').join(', ') || null,
    reason: unreadable.length > 0 ? texts.charge_unreadable(unreadable.join(', ')) : null,
  };
}

function percentOf(supply: SupplyTexts): number | null {
  const capacity = numberOf(supply.capacity);
  const percent = capacity === null ? null : plausiblePercent(capacity);
  return (
    percent ?? ratio(supply.energy_now, supply.energy_full) ?? ratio(supply.charge_now, supply.charge_full)
  );
}

function ratio(now: string | null, full: string | null): number | null {
  const [part, whole] = [numberOf(now), positive(numberOf(full))];
  return part === null || part < 0 || whole === null ? null : plausiblePercent((part / whole) * 100);
}

function weighted(batteries: readonly Battery[]): number | null {
  if (batteries.length === 0) return null;
  const weights =
    weightsBy(batteries, (each) => each.energy_full_uwh) ??
    weightsBy(batteries, (each) => each.charge_full_uah) ??
    batteries.map(() => 1);
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const filled = batteries.reduce((sum, each, at) => sum + (each.percent ?? 0) * (weights[at] ?? 0), 0);
  return plausiblePercent(filled / total);
}

/** Undefined unless all batteries report it: watt-hours and ampere-hours do not add up. */
function weightsBy(
  batteries: readonly Battery[],
  weightOf: (battery: Battery) => number | null,
): readonly number[] | undefined {
  const weights = batteries.map(weightOf).filter((weight) => weight !== null);
  return weights.length === batteries.length ? weights : undefined;
}

/** True when any battery charges, false when none does, null when none reports it. */
function chargingOf(batteries: readonly Battery[]): boolean | null {
  const known = batteries.map((each) => each.status).filter((status) => status !== null);
  return known.length === 0 ? null : known.includes('Charging');
}

function positive(value: number | null): number | null {
  return value !== null && value > 0 ? value : null;
}
