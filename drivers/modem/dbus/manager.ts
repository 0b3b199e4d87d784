/** Reads all modems from ModemManager. Modems stand in its object manager; bearers and SIM cards are asked one by one. */
import { z } from 'zod';
import { DeviceUnreachable } from '../../../src/errors.ts';
import type { Bus } from '../../../src/device/dbus/bus.ts';
import {
  bearerProperties,
  locationProperties,
  managedObjects,
  mm,
  type Modem,
  modemProperties,
  networkProperties,
  signalProperties,
  simProperties,
} from './properties.ts';
import { texts } from '../texts.ts';

export const mm_path = '/org/freedesktop/ModemManager1';
/** More modems than a gateway has ports. */
export const modems_max = 8;
/** Bearers of one modem that are asked for; MaxActiveBearers of real modems is 1 to 8. */
const bearers_max = 8;

/** Modems in the order in which they came. Throws `DeviceUnreachable`. */
export async function readModems(bus: Bus): Promise<readonly Modem[]> {
  const member = { interface: 'org.freedesktop.DBus.ObjectManager', member: 'GetManagedObjects' };
  const reply = await bus.call({ destination: mm, path: mm_path, ...member });
  if (!reply.ok) throw new DeviceUnreachable(texts.list_refused(reply.reason));
  const objects = managedObjects.safeParse(reply.value);
  if (!objects.success) throw new DeviceUnreachable(texts.list_unreadable);
  const found = Object.entries(objects.data)
    .filter(([, interfaces]) => interfaces[`${mm}.Modem`] !== undefined)
    .sort(([a], [b]) => numberOf(a) - numberOf(b))
    .slice(0, modems_max);
  const modems: Modem[] = [];
  for (const [path, interfaces] of found) {
    const modem = modemProperties.parse(interfaces[`${mm}.Modem`]);
    const bearers: Modem['bearers'][number][] = [];
    for (const bearer of modem.Bearers.filter(isKnown).slice(0, bearers_max)) {
      const read = bearerProperties.safeParse(await readAll(bus, bearer, `${mm}.Bearer`)).data;
      if (read) bearers.push(read);
    }
    const sim = modem.Sim === undefined ? undefined : await readAll(bus, modem.Sim, `${mm}.Sim`);
    modems.push({
      path,
      modem,
      network: networkProperties.safeParse(interfaces[`${mm}.Modem.Modem3gpp`]).data ?? {},
      location: locationProperties.safeParse(interfaces[`${mm}.Modem.Location`]).data ?? {},
      signal: signalProperties.safeParse(interfaces[`${mm}.Modem.Signal`]).data ?? {},
      cells: [],
      sim: simProperties.safeParse(sim).data ?? {},
      bearers,
    });
  }
  return modems;
}

/** Undefined when the object went away meanwhile. */
async function readAll(bus: Bus, path: string, name: string): Promise<unknown> {
  const about = { destination: mm, path, interface: 'org.freedesktop.DBus.Properties', member: 'GetAll' };
  const reply = await bus.call({ ...about, signature: 's', body: [name] });
  return reply.ok ? reply.value : undefined;
}

/** What GetLocation answers: values by source. */
const locations = z.array(z.tuple([z.number(), z.unknown()]));

/** The value of one location source of a modem, or why there is none. */
export async function readLocation(
  bus: Bus,
  path: string,
  source: number,
): Promise<{ readonly value: unknown } | { readonly refused: string }> {
  const about = { destination: mm, path, interface: `${mm}.Modem.Location`, member: 'GetLocation' };
  const reply = await bus.call(about);
  if (!reply.ok) return { refused: reply.reason };
  const pairs = locations.safeParse(reply.value).data ?? [];
  return { value: pairs.find(([key]) => key === source)?.[1] };
}

function numberOf(path: string): number {
  return Number(/\d+$/u.exec(path)?.[0] ?? 0);
}

function isKnown<T>(value: T | undefined): value is T {
  return value !== undefined;
}
