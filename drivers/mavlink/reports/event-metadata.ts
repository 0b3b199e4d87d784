/** What the events of an autopilot mean, from the metadata file of its firmware (libevents: README.md, validation/schema.json). */
import { z } from 'zod';
import type { VehicleEvent } from './px4-events.ts';

const enumeration = z.looseObject({
  type: z.string(),
  is_bitfield: z.boolean().optional(),
  separator: z.string().optional(),
  entries: z.record(z.string(), z.looseObject({ name: z.string(), description: z.string().optional() })),
});
const eventDefinition = z.looseObject({
  message: z.string(),
  arguments: z.array(z.looseObject({ type: z.string() })).optional(),
});
const eventsFile = z.looseObject({
  components: z.record(
    z.string(),
    z.looseObject({
      namespace: z.string(),
      enums: z.record(z.string(), enumeration).optional(),
      event_groups: z
        .record(z.string(), z.looseObject({ events: z.record(z.string(), eventDefinition) }))
        .optional(),
    }),
  ),
});
const generalFile = z.looseObject({
  metadataTypes: z.array(z.looseObject({ type: z.int(), uri: z.string(), fileCrc: z.number().optional() })),
});

type Enumeration = z.output<typeof enumeration>;
interface Definition extends z.output<typeof eventDefinition> {
  readonly namespace: string;
  readonly group: string;
}

const type_events = 4;
const id_bits = 24;
const sub_id_mask = 0xff_ff_ff;
/** Reports of checks, which are shown as reasons, and protocols of calibration. */
const groups_not_shown: ReadonlySet<string> = new Set(['health', 'arming_check', 'calibration']);
const base_types: Readonly<
  Record<string, readonly [size: number, read: (view: DataView, at: number) => number | bigint]>
> = {
  uint8_t: [1, (view, at) => view.getUint8(at)],
  int8_t: [1, (view, at) => view.getInt8(at)],
  uint16_t: [2, (view, at) => view.getUint16(at, true)],
  int16_t: [2, (view, at) => view.getInt16(at, true)],
  uint32_t: [4, (view, at) => view.getUint32(at, true)],
  int32_t: [4, (view, at) => view.getInt32(at, true)],
  uint64_t: [8, (view, at) => view.getBigUint64(at, true)],
  int64_t: [8, (view, at) => view.getBigInt64(at, true)],
  float: [4, (view, at) => view.getFloat32(at, true)],
};
/** An escaped character, a tag with its content, or an argument. Tags of one kind are not nested. */
const markup =
  /\\(?<escaped>.)|<(?<tag>[a-z]+)(?: [a-z]+="(?<attribute>[^"]*)")?>(?<content>.*?)<\/\k<tag>>|\{(?<index>\d+)(?::?(?:\.(?<digits>\d+))?)?(?<unit>[^}\d.:]*)\}/gsu;
/** A distance upwards has the unit of one along the ground. */
const units: Readonly<Record<string, string>> = { m_v: 'm', C: '°C' };

/** Returns where the file of the events is, from the general metadata file. */
export function eventsFileOf(
  general: unknown,
): { readonly uri: string; readonly crc: number | undefined } | undefined {
  const found = generalFile.parse(general).metadataTypes.find(({ type }) => type === type_events);
  return found && { uri: found.uri, crc: found.fileCrc };
}

export class EventMetadata {
  readonly #definitions = new Map<number, Definition>();
  readonly #enums = new Map<string, Enumeration>();

  /** Throws for what is no file of events. */
  constructor(file: unknown) {
    for (const [component, { namespace, enums = {}, event_groups = {} }] of Object.entries(
      eventsFile.parse(file).components,
    )) {
      for (const [name, its] of Object.entries(enums)) this.#enums.set(`${namespace}::${name}`, its);
      for (const [group, { events }] of Object.entries(event_groups))
        for (const [sub_id, event] of Object.entries(events))
          this.#definitions.set(Number(component) * 2 ** id_bits + (Number(sub_id) & sub_id_mask), {
            ...event,
            namespace,
            group,
          });
    }
  }

  /** The meaning of an event in a sentence; undefined: it is not in the file. */
  textOf({ id, arguments: bytes }: VehicleEvent): string | undefined {
    const definition = this.#definitions.get(id);
    if (!definition) return undefined;
    return fill(definition.message, this.#valuesOf(definition, bytes)).trim();
  }

  /** Whether it is a message for the pilot. */
  isShown({ id }: VehicleEvent): boolean {
    const definition = this.#definitions.get(id);
    return definition !== undefined && !groups_not_shown.has(definition.group);
  }

  #valuesOf(
    { namespace, arguments: types = [] }: Definition,
    bytes: readonly number[],
  ): readonly (number | string)[] {
    const view = new DataView(Uint8Array.from(bytes).buffer);
    const values: (number | string)[] = [];
    let at = 0;
    for (const { type } of types) {
      const its = this.#enums.get(type.includes('::') ? type : `${namespace}::${type}`);
      const [size, read] = base_types[its?.type ?? type] ?? [];
      if (size === undefined || read === undefined || at + size > view.byteLength) return values;
      const value = read(view, at);
      values.push(its ? entryOf(its, value) : Number(value));
      at += size;
    }
    return values;
  }
}

function entryOf(
  { entries, is_bitfield = false, separator = '|' }: Enumeration,
  value: number | bigint,
): string {
  const nameOf = (key: string): string => entries[key]?.description || entries[key]?.name || key;
  if (!is_bitfield) return nameOf(String(value));
  const bits = Object.keys(entries).filter((bit) => (BigInt(value) & BigInt(bit)) !== 0n);
  return bits.map(nameOf).join(separator);
}

function fill(message: string, values: readonly (number | string)[]): string {
  let text = '';
  let from = 0;
  for (const { 0: whole, index: at, groups = {} } of message.matchAll(markup)) {
    text += message.slice(from, at) + (filled(groups, values) ?? whole);
    from = at + whole.length;
  }
  return text + message.slice(from);
}

/** Undefined: there is no such argument. */
function filled(
  {
    escaped,
    tag,
    attribute = '',
    content = '',
    index,
    digits,
    unit = '',
  }: Readonly<Record<string, string | undefined>>,
  values: readonly (number | string)[],
): string | undefined {
  if (escaped !== undefined) return escaped;
  if (tag !== undefined) return isContentShown(tag, attribute) ? fill(content, values) : '';
  const value = values[Number(index) - 1];
  const text = typeof value === 'number' ? shown(value, digits) : value;
  return text === undefined || unit === '' ? text : `${text} ${units[unit] ?? unit}`;
}

/** What is for developers, and tags that are not known, are left out. */
function isContentShown(tag: string, attribute: string): boolean {
  if (tag === 'profile')
    return attribute === 'normal' || (attribute.startsWith('!') && attribute !== '!normal');
  return tag === 'param' || tag === 'a';
}

function shown(value: number, digits: string | undefined): string {
  if (digits !== undefined) return value.toFixed(Number(digits));
  return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(6)));
}
