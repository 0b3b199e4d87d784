/** Facts of the modems for `kit-connector status`. */
import { interfacesOf, isAbroad, ispOf } from './links.ts';
import type { Modem } from './dbus/properties.ts';
import { reasonOf, technologyOf } from './words.ts';

/** Digits of an IMEI that are shown: enough to distinguish two modems, too few to track one. */
const imei_digits = 4;

/** One line for each modem, by its interface: `wwan0: connected, 4G, 70 %, Telia, RM520N-GL, IMEI ...4321`. */
export function statusFacts(
  modems: readonly Modem[],
  interfaces: Readonly<Record<string, string>>,
): Readonly<Record<string, string | number>> {
  const lines = modems.map((modem) => {
    const name = interfacesOf(modem, interfaces)[0] ?? `modem ${modem.path.split('/').at(-1) ?? ''}`;
    return [name, lineOf(modem)] as const;
  });
  return { modems: modems.length, ...Object.fromEntries(lines) };
}

function lineOf(read: Modem): string {
  const { modem, network, sim } = read;
  const isp = ispOf(read);
  const quality = modem.SignalQuality?.[0];
  const imei = modem.EquipmentIdentifier;
  return [
    reasonOf(read)?.replace('modem: ', '') ?? 'connected',
    technologyOf(read),
    quality === undefined ? undefined : `${quality} %`,
    isp,
    isAbroad(network.RegistrationState) ? sim.OperatorName && `SIM of ${sim.OperatorName}` : undefined,
    modem.Model,
    imei === undefined ? undefined : `IMEI ...${imei.slice(-imei_digits)}`,
  ]
    .filter((part) => part !== undefined && part !== null)
    .join(', ');
}
