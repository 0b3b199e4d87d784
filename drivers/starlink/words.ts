/** The dish's own codes in a technician's words. */
import type { LinkCause } from '../../src/contract/kit.ts';
import type { DishStatus } from './api/messages.ts';

/** `DishOutage.Cause` of a dish that lies flat. */
export const outage_stowed = 2;

/** `DishOutage.Cause`. */
const outages: Readonly<Record<number, string>> = {
  1: 'starting up',
  [outage_stowed]: 'stowed',
  3: 'shut down because it is too hot',
  4: 'waiting for a satellite schedule',
  5: 'no satellites in view',
  6: 'obstructed',
  7: 'no signal from the satellite',
  8: 'no answer from the ground station',
  9: 'moving its motors',
  10: 'testing its cable',
  11: 'sleeping to save power',
  12: 'moving, which its plan does not allow',
};

/** `UtDisablementCode`. */
const disablements: Readonly<Record<number, string>> = {
  2: 'no active account',
  3: 'too far from the service address',
  4: 'on the ocean, which its plan does not cover',
  5: 'in a country without service',
  6: 'in a blocked country',
  7: 'data allowance used up',
  8: 'cell disabled',
  9: 'in a country without a licence',
  10: 'roaming is restricted',
  11: 'location unknown',
  12: 'account disabled',
  13: 'firmware too old',
  14: 'moving too fast for its plan',
  15: 'below the flight limits of its plan',
  16: 'in a blocked area',
};

/** Fields of `DishAlerts`. From 12 on the numbers moved between firmwares, so those are shown as numbers. */
const alerts: Readonly<Record<number, string>> = {
  1: 'motors stuck',
  2: 'too hot: shut down',
  3: 'hot: slowed down',
  4: 'not where it is registered',
  5: 'mast not upright',
  6: 'slow Ethernet: check the cable',
  7: 'roaming',
  8: 'update waiting for a restart',
  9: 'melting snow',
  10: 'power supply hot: slowed down',
  11: 'saving power',
};

const disablement_okay = 1;

/** Why the link is as it is; null when the dish works. An account that is blocked explains more than the outage it causes. */
export function reasonOf(status: DishStatus): string | null {
  const { disablement, outage, obstructed } = status;
  if (disablement > disablement_okay) {
    return `dish: service is disabled: ${disablements[disablement] ?? `code ${disablement}`}`;
  }
  if (outage !== undefined) return `dish: ${outages[outage] ?? 'outage of unknown cause'}`;
  return obstructed ? 'dish: obstructed at times' : null;
}

/** Why the dish carries nothing, as one word; null when it works. */
export function causeOf({ disablement, outage }: DishStatus): LinkCause | null {
  if (disablement > disablement_okay) return 'disabled';
  return outage === undefined ? null : (causes[outage] ?? 'device');
}

/** Of the outages that are no state of the dish itself. */
const causes: Readonly<Record<number, LinkCause>> = {
  4: 'no_satellite',
  5: 'no_satellite',
  6: 'obstructed',
  7: 'no_signal',
  8: 'no_answer',
  12: 'disabled',
};

/** Such as `roaming, melting snow`; null when there is none. */
export function alertsText(numbers: readonly number[]): string | null {
  return numbers.map((number) => alerts[number] ?? `alert ${number}`).join(', ') || null;
}
