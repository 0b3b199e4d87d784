/** Definitions of messages: id, checksum seed, lengths and fields, from node-mavlink and our additions. */
import { checks, layouts as libraryLayouts } from './definitions-table.ts';
import { extraChecks, extraLayouts } from './extra-definitions.ts';
import { type Field, sizeOf } from './fields.ts';

const layouts = { ...libraryLayouts, ...extraLayouts } as const;
type Layouts = typeof layouts;

export type MessageName = keyof Layouts;

type FieldOf<Text> = Text extends `${'char' | 'chunk'} ${infer Name}[${number}]` | `hex64 ${infer Name}`
  ? Record<Name, string>
  : Text extends `${string} ${infer Name}[${number}]`
    ? Record<Name, readonly number[]>
    : Text extends `${string} ${infer Name}`
      ? Record<Name, number>
      : never;
type FieldsOf<Text> = Text extends `${infer First}, ${infer Rest}`
  ? FieldOf<First> & FieldsOf<Rest>
  : FieldOf<Text>;

/**
 * Fields by message, named as in the XML, in the raw units of the wire; sentinels and NaN are as they came. 64-bit
 * integers are numbers, exact up to 2^53; a `uid` is 16 hexadecimal digits. Texts end at their NUL.
 */
export type Messages = {
  readonly [K in MessageName]: Layouts[K] extends `${number}: ${infer Text}`
    ? { readonly [F in keyof FieldsOf<Text>]: FieldsOf<Text>[F] }
    : never;
};

export interface Definition {
  readonly id: number;
  readonly name: MessageName;
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
  Object.keys(layouts)
    .filter(isMessageName)
    .map((name) => [name, definitionFrom(name)]),
);

function isMessageName(name: string): name is MessageName {
  return Object.hasOwn(layouts, name);
}

/** The messages that the driver reads or writes. */
export const definitions: readonly Definition[] = [...byName.values()];

/** The seed of the checksum, and -1 where the message is not known. */
export function crcExtraOf(msgid: number): number {
  return msgid < known_ids_max ? (seeds[msgid] ?? 0) - 1 : -1;
}

export function definitionOf(name: MessageName): Definition {
  const definition = byName.get(name);
  if (definition === undefined) throw new RangeError(`the dialects do not define ${name}`);
  return definition;
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

/** From `id: type field, type field[length], ...`, in the order of the wire and without gaps. */
function definitionFrom(name: MessageName): Definition {
  const [, id = '', list = ''] = /^(\d+): (.*)$/u.exec(layouts[name]) ?? [];
  let at = 0;
  const fields = list.split(', ').map((text): Field => {
    const [, type = '', field = '', length = '0'] = /^(\w+) (\w+)(?:\[(\d+)\])?$/u.exec(text) ?? [];
    const begin = at;
    at += sizeOf(type) * (Number(length) || 1);
    return { name: field, type, at: begin, length: Number(length) };
  });
  return { id: Number(id), name, crc_extra: crcExtraOf(Number(id)), full_length: at, fields };
}
