/** The option `host` of a device. A port behind it would be taken for a part of the name, and the device never be found. */
import { z } from 'zod';
import { texts } from './texts.ts';

const chars_max = 253;
/** A name or an IPv4 address without a colon, or an IPv6 address, which has several and maybe a zone. */
const host_pattern = /^(?:[\w.-]+|[\da-f.]*:[\da-f.]*:[\da-f.:]*(?:%[\w.-]+)?)$/iu;

export const hostOption = z.string().min(1).max(chars_max).regex(host_pattern, texts.must_be_host);

interface HostEntry {
  readonly name: string;
  readonly host: string;
}

/** Whether other entries are reached at the host of this one, as behind a router: then a reported port may be that of another device. */
export function isHostShared(entry: HostEntry, entries: readonly HostEntry[]): boolean {
  return entries.some(({ name, host }) => name !== entry.name && host === entry.host);
}
