/** Gets the metadata of events from a PX4: the general file that COMPONENT_METADATA names, then the file of events, once for a firmware. */
import type { Messages } from '../wire/messages.ts';
import { unpackXz } from '../wire/xz.ts';
import { ftp_end_of_file, FtpExchange, readVehicleFile } from './vehicle-file.ts';
import { z } from 'zod';
import { messageOf } from '../../../src/platform/errors.ts';
import type { VehicleEvent } from './px4-events.ts';

const packed_bytes_max = 512 * 1024;
const file_bytes_max = 4 * 1024 * 1024;
const firmwares_max = 8;
/** What a vehicle has sent wrongly or not at all is requested again. */
const retry_ms = 600_000;
const uri_pattern = /^mftp:\/\/(?:\[;comp=\d+\])?(?<path>.+)$/iu;

/** The metadata of all firmwares that were met, by the checksum and name of the file. */
export class KnownMetadata {
  readonly #known = new Map<string, EventMetadata>();

  get(key: string): EventMetadata | undefined {
    return this.#known.get(key);
  }

  add(key: string, metadata: EventMetadata): void {
    this.#known.set(key, metadata);
    const [oldest] = this.#known.keys();
    if (this.#known.size > firmwares_max && oldest !== undefined) this.#known.delete(oldest);
  }
}

export class MetadataFetch {
  /** Undefined until its file was read, and without one. */
  metadata: EventMetadata | undefined;
  readonly #known: KnownMetadata;
  readonly #onFault: (reason: string) => void;
  /** While its files are read. */
  #exchange: FtpExchange | undefined;
  #failed_ms = Number.NEGATIVE_INFINITY;
  #uri: string | undefined;

  constructor(known: KnownMetadata, onFault: (reason: string) => void) {
    this.#known = known;
    this.#onFault = onFault;
  }

  /** The vehicle names its general file. */
  announced(uri: string): void {
    this.#uri ??= uri;
  }

  restart(): void {
    this.#exchange = undefined;
    this.#uri = undefined;
    this.metadata = undefined;
  }

  receive({ payload }: Messages['FILE_TRANSFER_PROTOCOL']): void {
    this.#exchange?.receive(payload);
  }

  /** Returns the request to send now. */
  next(now_ms: number): Messages['FILE_TRANSFER_PROTOCOL']['payload'] | undefined {
    if (this.metadata || this.#uri === undefined || now_ms - this.#failed_ms < retry_ms) return undefined;
    if (!this.#exchange) {
      this.#exchange = new FtpExchange();
      void this.#run(this.#exchange, this.#uri);
    }
    return this.#exchange.next(now_ms);
  }

  /** What a vehicle sends is not trusted: whatever is wrong with a file, events stay numbers. */
  async #run(exchange: FtpExchange, uri: string): Promise<void> {
    try {
      const metadata = await this.#read(exchange, uri);
      if (this.#exchange === exchange) this.metadata = metadata;
    } catch (error) {
      if (this.#exchange !== exchange) return;
      this.#exchange = undefined;
      this.#failed_ms = performance.now();
      this.#onFault(messageOf(error));
    }
  }

  async #read(exchange: FtpExchange, uri: string): Promise<EventMetadata> {
    const events = eventsFileOf(await jsonOf(exchange, uri));
    if (!events) throw new RangeError('the firmware has no metadata of events');
    const key = `${events.crc} ${events.uri}`;
    const known = this.#known.get(key) ?? new EventMetadata(await jsonOf(exchange, events.uri));
    this.#known.add(key, known);
    return known;
  }
}

/** Reads a file of the vehicle and unpacks it. */
async function jsonOf(exchange: FtpExchange, uri: string): Promise<unknown> {
  const found = uri_pattern.exec(uri)?.groups?.['path'];
  if (found === undefined) throw new RangeError(`the vehicle does not serve ${uri}`);
  const path = found.startsWith('/') ? found : `/${found}`;
  const parts: number[] = [];
  const end = await readVehicleFile(
    async (request) => exchange.ask(request),
    path,
    (data) => {
      for (const byte of data) parts.push(byte);
      return parts.length <= packed_bytes_max;
    },
  );
  if (end === 'stopped') throw new RangeError(`larger than ${packed_bytes_max} bytes`);
  if (end !== ftp_end_of_file) throw new RangeError(end === undefined ? 'no answer' : `file error ${end}`);
  const bytes = Uint8Array.from(parts);
  return JSON.parse(new TextDecoder().decode(path.endsWith('.xz') ? unpackXz(bytes, file_bytes_max) : bytes));
}

// What the events of an autopilot mean, from the metadata file of its firmware (libevents: README.md, validation/schema.json).

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
function eventsFileOf(
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
