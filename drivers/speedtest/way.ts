/** Which link a test takes, and whether data cost money on it. */
import { join } from 'node:path';
import type { LinkType } from '../../src/contract/kit.ts';
import { readText } from '../../src/device/system-files.ts';
import { CommandRefused } from '../../src/errors.ts';
import type { SpeedtestOptions } from './options.ts';
import { texts } from './texts.ts';

export interface Way {
  /** Interface name. */
  readonly device: string;
  readonly metered: boolean;
}

/**
 * The named link, or that of the default route. Metered is what the options name, and a cellular or satellite link as the drivers of the
 * links report it; where none does, what looks like a modem. Throws `CommandRefused` when the
 * link does not exist.
 */
export async function chooseWay(
  options: SpeedtestOptions,
  link: string | undefined,
  linkType: (name: string) => LinkType | null,
): Promise<Way> {
  const { proc, sys } = options.roots;
  const device = link ?? defaultDevice((await readText(join(proc, 'net/route'))) ?? '');
  if (device === undefined) throw new CommandRefused(texts.no_default_route);
  // What the operator sends must not lead out of the folder of the links.
  const isName = /^[^/\s]{1,64}$/u.test(device) && device !== '.' && device !== '..';
  const uevent = (isName ? await readText(join(sys, 'class/net', device, 'uevent')) : undefined) ?? '';
  if (uevent === '') throw new CommandRefused(texts.link_unknown(device));
  const isCostly = costs(linkType(device), device, uevent);
  return { device, metered: isCostly || options.metered.includes(device) };
}

function costs(type: LinkType | null, device: string, uevent: string): boolean {
  if (type !== null) return type === 'cellular' || type === 'satellite';
  return /^DEVTYPE=wwan$/mu.test(uevent) || /^(?:ppp|wwan)\d/u.test(device);
}

/** Pure: the device of the default route with the lowest metric, from the text of /proc/net/route. */
export function defaultDevice(table: string): string | undefined {
  const routes = table
    .split('\n')
    .slice(1)
    .map((line) => line.split('\t'))
    .filter(([, destination, , flags, , , , mask]) => destination === zero && mask === zero && isUp(flags));
  const [best] = routes.sort(([, , , , , , a], [, , , , , , b]) => Number(a) - Number(b));
  return best?.[0];
}

const zero = '00000000';
const rtf_up = 0x1;

function isUp(flags = '0'): boolean {
  return (Number.parseInt(flags, 16) & rtf_up) !== 0;
}
