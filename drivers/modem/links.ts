/** Maps modems to network interfaces and to the properties of these links. Pure. */
import type { LinkKnowledge } from '../../src/toolkit/driver/driver.ts';
import type { Modem } from './dbus/properties.ts';
import { causeOf, isAbroad, reasonOf } from './words.ts';

/** `MMModemPortType` of a network interface. */
const net_port = 2;
/** `MMModem3gppRegistrationState` with the own operator. */
const at_home: ReadonlySet<number> = new Set([1, 6, 9]);

/**
 * One entry for each interface. The ports that a modem owns decide, never its number. Of two modems that claim one interface,
 * such as right after it was plugged in again, the connected one is used, else the newer.
 */
export function linksOf(
  modems: readonly Modem[],
  interfaces: Readonly<Record<string, string>>,
): ReadonlyMap<string, LinkKnowledge> {
  const rank = (modem: Modem): number => (reasonOf(modem) === null ? 1 : 0);
  const sorted = modems.toSorted((a, b) => rank(a) - rank(b));
  return new Map(
    sorted.flatMap((modem) =>
      interfacesOf(modem, interfaces).map((name) => [
        name,
        {
          name,
          type: 'cellular' as const,
          isp: ispOf(modem),
          reason: reasonOf(modem),
          cause: causeOf(modem),
        },
      ]),
    ),
  );
}

/** The interfaces that carry a connection; when none does, all candidates. */
export function interfacesOf(
  { modem, bearers }: Modem,
  interfaces: Readonly<Record<string, string>>,
): string[] {
  const net = modem.Ports.filter(([, type]) => type === net_port).map(([name]) => name);
  const ttys = modem.Ports.filter(([, type]) => type !== net_port).map(([name]) => name);
  const mapped = (name: string): string | undefined => {
    if (Object.hasOwn(interfaces, name)) return interfaces[name];
    // A modem that dials carries its data over a serial port; the name of pppd's interface has to be configured.
    return ttys.includes(name) ? undefined : name;
  };
  const carrying = bearers
    .filter(({ Connected }) => Connected === true)
    .flatMap(({ Interface }) => Interface ?? []);
  const candidates =
    carrying.length > 0 ? carrying : [...net, ...ttys.filter((name) => Object.hasOwn(interfaces, name))];
  return [...new Set(candidates.flatMap((name) => mapped(name) ?? []))];
}

/** The operator that serves the modem now, such as `Telia` or `Orange F (roaming)`; undefined while not registered. */
export function ispOf({ network, sim }: Modem): string | undefined {
  const registration = network.RegistrationState ?? 0;
  const name = network.OperatorName ?? network.OperatorCode;
  if (isAbroad(registration)) return name === undefined ? undefined : `${name} (roaming)`;
  return isHome(registration) ? (network.OperatorName ?? sim.OperatorName ?? name) : undefined;
}

export function isHome(registration: number | undefined): boolean {
  return at_home.has(registration ?? 0);
}
