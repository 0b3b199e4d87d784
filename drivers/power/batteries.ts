/** Joins the batteries that the kernel shows into one value for the kit (Documentation/ABI/testing/sysfs-class-power). */
import { clampPercent, numberOf, type Reading, unknown_reading } from './reading.ts';
import { texts } from './texts.ts';

/** Texts of the files of one power supply; null: the kernel has no answer to this now, or never. */
export interface SupplyTexts {
  readonly name: string;
  readonly capacity: string | null;
  readonly status: string | null;
  readonly energy_now: string | null;
  readonly energy_full: string | null;
  readonly charge_now: string | null;
  readonly charge_full: string | null;
  readonly voltage_now: string | null;
}

/** One battery, read. */
export interface Battery {
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
  if (capacity !== null && capacity >= 0) return clampPercent(capacity);
  return ratio(supply.energy_now, supply.energy_full) ?? ratio(supply.charge_now, supply.charge_full);
}

function ratio(now: string | null, full: string | null): number | null {
  const [part, whole] = [numberOf(now), positive(numberOf(full))];
  return part === null || part < 0 || whole === null ? null : clampPercent((part / whole) * 100);
}

function weighted(batteries: readonly Battery[]): number | null {
  if (batteries.length === 0) return null;
  const weights =
    weightsBy(batteries, (each) => each.energy_full_uwh) ??
    weightsBy(batteries, (each) => each.charge_full_uah) ??
    batteries.map(() => 1);
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const filled = batteries.reduce((sum, each, at) => sum + (each.percent ?? 0) * (weights[at] ?? 0), 0);
  return clampPercent(filled / total);
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
