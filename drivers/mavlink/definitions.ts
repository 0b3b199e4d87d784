/** What is known of each message: its id, the seed of its checksum, its lengths and its fields, from node-mavlink and our additions. */
import {
  ardupilotmega,
  asluav,
  common,
  development,
  icarous,
  minimal,
  standard,
  storm32,
  ualberta,
  uavionix,
} from 'node-mavlink';
import { extraChecks, extraDefinitions } from './extra-definitions.ts';

export interface Field {
  /** As in the XML. */
  readonly name: string;
  /** Of the field, or of each element of an array: `uint8_t`, `float`, `char`, ... */
  readonly type: string;
  readonly at: number;
  /** Number of elements; 0 for what is no array. */
  readonly length: number;
}

export interface Definition {
  readonly id: number;
  readonly name: string;
  readonly crc_extra: number;
  /** Without and with the extension fields. MAVLink 1 knows the former only. */
  readonly base_length: number;
  readonly full_length: number;
  readonly fields: readonly Field[];
}

/** Ids of MAVLink 2 have 24 bits; no dialect has one beyond 16. */
export const known_ids_max = 0x1_00_00;

/** Later ones win where two dialects have the same id. */
const dialects = [
  development,
  storm32,
  asluav,
  icarous,
  ualberta,
  uavionix,
  minimal,
  standard,
  common,
  ardupilotmega,
];

const byId = new Map<number, Definition>(
  dialects.flatMap((dialect) =>
    Object.values(dialect.REGISTRY).map((message) => [message.MSG_ID, fromLibrary(message)]),
  ),
);
for (const definition of extraDefinitions) byId.set(definition.id, definition);
const byName = new Map([...byId.values()].map((definition) => [definition.name, definition]));

/** By id: the seed of the checksum, and -1 where the message is not known. */
export const crcExtras = new Int16Array(known_ids_max).fill(-1);
/** By id: the lengths that a MAVLink 1 frame may have. Some senders append the extensions, which MAVLink 1 does not know. */
export const baseLengths = new Uint8Array(known_ids_max);
export const fullLengths = new Uint8Array(known_ids_max);

/**
 * By id: the seed of a second definition, where a message that was work in progress has changed since. Its frames are recognised by
 * their checksum and are not read.
 */
export const otherCrcExtras = new Map<number, number>();

for (const { id, crc_extra, base_length, full_length } of byId.values()) {
  crcExtras[id] = crc_extra;
  baseLengths[id] = base_length;
  fullLengths[id] = full_length;
}
for (const [id, crc_extra, base_length] of extraChecks) {
  const other = byId.get(id);
  if (other && other.crc_extra !== crc_extra) otherCrcExtras.set(id, other.crc_extra);
  crcExtras[id] = crc_extra;
  baseLengths[id] = base_length;
  fullLengths[id] = base_length;
}

/** The definition of a message by its name in the XML. */
export function definitionOf(name: string): Definition | undefined {
  return byName.get(name);
}

type LibraryMessage = (typeof common.REGISTRY)[number];

function fromLibrary(message: LibraryMessage): Definition {
  const own = message.FIELDS.filter((field) => !field.extension);
  return {
    id: message.MSG_ID,
    name: message.MSG_NAME,
    crc_extra: message.MAGIC_NUMBER,
    base_length: own.reduce(
      (end, field) => Math.max(end, field.offset + field.size * (field.length || 1)),
      0,
    ),
    full_length: message.PAYLOAD_LENGTH,
    fields: message.FIELDS.map((field) => ({
      name: field.source,
      type: field.type.replace('[]', '').replace('_mavlink_version', ''),
      at: field.offset,
      length: field.length,
    })),
  };
}
