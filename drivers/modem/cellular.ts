/** The entry of each modem in the feed `cellular` of the kit's gateway. Pure. */
import type { CellularModem } from '../../src/contract/feeds.ts';
import { servingCell, strengthOf } from './cell.ts';
import type { Modem } from './dbus/properties.ts';
import { interfacesOf, isAbroad, isHome } from './links.ts';
import { reasonOf, technologyOf } from './words.ts';

/** Digits of identities that leave the kit: enough to distinguish two, too few to track one. */
const shown_digits = 4;

/** Modems without an interface are left out: a value belongs to a link. */
export function cellularOf(
  modems: readonly Modem[],
  interfaces: Readonly<Record<string, string>>,
): readonly CellularModem[] {
  return modems.flatMap((modem) => {
    const name = interfacesOf(modem, interfaces)[0];
    return name === undefined ? [] : [oneOf(name, modem)];
  });
}

function oneOf(name: string, read: Modem): CellularModem {
  const { modem } = read;
  return {
    name,
    state: reasonOf(read)?.replace('modem: ', '') ?? 'connected',
    signal_pct: modem.SignalQuality?.[0] ?? null,
    technology: technologyOf(read),
    ...servingCell(read.cells),
    ...strengthOf(read),
    ...subscriptionOf(read),
    model: modem.Model ?? null,
    imei_end: endOf(modem.EquipmentIdentifier),
  };
}

function subscriptionOf({ network, sim }: Modem) {
  const isAway = isAbroad(network.RegistrationState);
  return {
    operator: network.OperatorName ?? null,
    operator_code: network.OperatorCode ?? null,
    roaming: isAway || isHome(network.RegistrationState) ? isAway : null,
    sim_operator: sim.OperatorName ?? null,
    sim_iccid_end: endOf(sim.SimIdentifier),
  };
}

function endOf(identity: string | undefined): string | null {
  return identity?.slice(-shown_digits) ?? null;
}
