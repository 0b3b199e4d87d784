/** Where the kit is and how full its battery is, each with the reason when it is unknown. Pure: report in, lines out. */
import { z } from 'zod';
import { kitTelemetry } from '../../contract/kit.ts';
import type { StatusReport } from '../../local/api.ts';
import { duration, type Paint } from '../terminal/shell.ts';
import { texts } from '../texts.ts';

const kitPart = z.looseObject(
  kitTelemetry.pick({ location: true, battery: true, battery_charging: true }).shape,
);

/** The lines `location` and `battery` of status. */
export function kitLines({ kit, location, drivers }: StatusReport, paint: Paint): readonly string[] {
  const { data } = kitPart.safeParse(kit);
  return [
    `${paint('bold', 'location')} ${locationText(data?.location, location, paint)}`,
    `${paint('bold', 'battery')}  ${batteryText(data, drivers, paint)}`,
  ];
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
