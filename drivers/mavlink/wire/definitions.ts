/** Definitions of messages: id, checksum seed, lengths and fields, from node-mavlink and our additions. */
import { checks, layouts } from './definitions-table.ts';
import { extraChecks, extraLayouts } from './extra-definitions.ts';

export interface Field {
  /** Name as in the XML. */
  readonly name: string;
  /** Of the field, or of each element of an array: `uint8_t`, `float`, `char`, ... */
  readonly type: string;
  readonly at: number;
  /** Number of elements; 0 for a scalar. */
  readonly length: number;
}

export interface Definition {
  readonly id: number;
  readonly name: string;
  readonly crc_extra: number;
  /** With the extension fields. */
  readonly full_length: number;
  readonly fields: readonly Field[];
}

/** Ids of MAVLink 2 have 24 bits; no dialect has one beyond 16. */
const known_ids_max = 0x1_00_00;
/** Ids of MAVLink 1 have 8 bits. */
const ids_v1_max = 0x1_00;

/** By id: CRC_EXTRA and one more. Most stay 0, for messages that are not known, and what is never written takes no memory. */
const seeds = new Uint16Array(known_ids_max);

/** By id: the lengths that a MAVLink 1 frame may have. Some senders append the extensions, which MAVLink 1 does not know. */
export const baseLengths = new Uint8Array(ids_v1_max);
export const fullLengths = new Uint8Array(ids_v1_max);

/**
 * By id: the seed of a second definition, where a message that was work in progress has changed since. Its frames are recognised by
 * their checksum and are not read.
 */
export const otherCrcExtras = new Map<number, number>();

for (const check of checks.split(',')) {
  const [id = 0, crc_extra = 0, base_length = 0, full_length = 0] = check.trim().split(' ').map(Number);
  know(id, crc_extra, { base_length, full_length });
}
for (const [id, crc_extra, base_length] of extraChecks) {
  const other = crcExtraOf(id);
  if (other !== -1 && other !== crc_extra) otherCrcExtras.set(id, other);
  know(id, crc_extra, { base_length, full_length: base_length });
}

const byName = new Map(
  `${layouts}${extraLayouts}`
    .split('\n')
    .filter((line) => line !== '')
    .map(definitionFrom)
    .map((definition) => [definition.name, definition]),
);

/** The seed of the checksum, and -1 where the message is not known. */
export function crcExtraOf(msgid: number): number {
  return msgid < known_ids_max ? (seeds[msgid] ?? 0) - 1 : -1;
}

/** Returns the definition of a message by its name in the XML; undefined if the driver neither reads nor writes it. */
export function definitionOf(name: string): Definition | undefined {
  return byName.get(name);
}

function know(
  id: number,
  crc_extra: number,
  { base_length, full_length }: { readonly base_length: number; readonly full_length: number },
): void {
  seeds[id] = crc_extra + 1;
  // Ids that MAVLink 1 cannot encode are outside these arrays and are not stored.
  baseLengths[id] = base_length;
  fullLengths[id] = full_length;
}

/** From `id NAME: type field, type field[length], ...`, in the order of the wire and without gaps. */
function definitionFrom(line: string): Definition {
  const [, id = '', name = '', list = ''] = /^(\d+) (\w+): (.*)$/u.exec(line) ?? [];
  let at = 0;
  const fields = list.split(', ').map((text): Field => {
    const [, type = '', field = '', length = '0'] = /^(\w+) (\w+)(?:\[(\d+)\])?$/u.exec(text) ?? [];
    const begin = at;
    at += sizeOf(type) * (Number(length) || 1);
    return { name: field, type, at: begin, length: Number(length) };
  });
  return { id: Number(id), name, crc_extra: crcExtraOf(Number(id)), full_length: at, fields };
}

/** Bytes of one value. */
function sizeOf(type: string): number {
  if (type === 'char') return 1;
  return type === 'float' ? 4 : Number(type.replaceAll(/\D/g, '')) / 8;
}
