/** Reads all modems from ModemManager. Modems stand in its object manager; bearers and SIM cards are asked one by one. */
import { z } from 'zod';
import { DeviceUnreachable } from '../../../src/platform/errors.ts';
import type { Bus } from '../../../src/toolkit/device/dbus/bus.ts';
import {
  bearerProperties,
  locationProperties,
  managedObjects,
  mm,
  type Modem,
  modemProperties,
  networkProperties,
  objectNumber,
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
    .flatMap(([path, interfaces]) => {
      const number = objectNumber(path);
      return number !== undefined && interfaces[`${mm}.Modem`] ? [{ number, path, interfaces }] : [];
    })
    .sort((a, b) => a.number - b.number)
    .slice(0, modems_max);
  // In parallel: answers that come late one after the other would make what is reported minutes old.
  return Promise.all(found.map(async ({ path, interfaces }) => readModem(bus, path, interfaces)));
}

/** One modem of the list, with its bearers and its SIM card. */
async function readModem(
  bus: Bus,
  path: string,
  interfaces: Readonly<Record<string, unknown>>,
): Promise<Modem> {
  const modem = modemProperties.parse(interfaces[`${mm}.Modem`]);
  const [sim, ...bearers] = await Promise.all([
    modem.Sim === undefined ? undefined : readAll(bus, modem.Sim, `${mm}.Sim`),
    ...modem.Bearers.filter(isKnown)
      .slice(0, bearers_max)
      .map(async (bearer) => readAll(bus, bearer, `${mm}.Bearer`)),
  ]);
  return {
    path,
    modem,
    network: networkProperties.safeParse(interfaces[`${mm}.Modem.Modem3gpp`]).data ?? {},
    location: locationProperties.safeParse(interfaces[`${mm}.Modem.Location`]).data ?? {},
    signal: signalProperties.safeParse(interfaces[`${mm}.Modem.Signal`]).data ?? {},
    cells: [],
    sim: simProperties.safeParse(sim).data ?? {},
    bearers: bearers.map((bearer) => bearerProperties.safeParse(bearer).data).filter(isKnown),
  };
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

function isKnown<T>(value: T | undefined): value is T {
  return value !== undefined;
}
