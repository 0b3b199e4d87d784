/** Gets the metadata of events from a PX4: the general file that COMPONENT_METADATA names, then the file of events, once for a firmware. */
import type { Messages } from '../wire/messages.ts';
import { unpackXz } from '../wire/xz.ts';
import { EventMetadata, eventsFileOf } from './event-metadata.ts';
import { VehicleFile } from './vehicle-file.ts';

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
    const [oldest] = this.#known.keys();
    if (this.#known.size >= firmwares_max && oldest !== undefined) this.#known.delete(oldest);
    this.#known.set(key, metadata);
  }
}

export class MetadataFetch {
  readonly #known: KnownMetadata;
  readonly #onFault: (reason: string) => void;
  #metadata: EventMetadata | undefined;
  #file: VehicleFile | undefined;
  #take: ((bytes: Uint8Array) => void) | undefined;
  #failed_ms = Number.NEGATIVE_INFINITY;
  #uri: string | undefined;

  constructor(known: KnownMetadata, onFault: (reason: string) => void) {
    this.#known = known;
    this.#onFault = onFault;
  }

  get metadata(): EventMetadata | undefined {
    return this.#metadata;
  }

  /** The vehicle names its general file. */
  announced(uri: string): void {
    this.#uri ??= uri;
  }

  restart(): void {
    this.#file = undefined;
    this.#uri = undefined;
    this.#metadata = undefined;
  }

  receive({ payload }: Messages['FILE_TRANSFER_PROTOCOL']): void {
    this.#file?.receive(payload);
  }

  /** Returns the request to send now. */
  next(now_ms: number): Messages['FILE_TRANSFER_PROTOCOL']['payload'] | undefined {
    if (this.#metadata || this.#uri === undefined || now_ms - this.#failed_ms < retry_ms) return undefined;
    const result = this.#file?.result;
    if (result) this.#finish(result, now_ms);
    else if (!this.#file)
      this.#guard(() => this.#open(this.#uri ?? '', (bytes) => this.#general(bytes)), now_ms);
    return this.#file?.next(now_ms);
  }

  #finish(result: NonNullable<VehicleFile['result']>, now_ms: number): void {
    const take = this.#take;
    this.#file = undefined;
    this.#guard(() => {
      if ('fault' in result) throw new RangeError(result.fault);
      take?.(result.bytes);
    }, now_ms);
  }

  #general(bytes: Uint8Array): void {
    const events = eventsFileOf(JSON.parse(new TextDecoder().decode(bytes)));
    if (!events) throw new RangeError('the firmware has no metadata of events');
    const key = `${events.crc} ${events.uri}`;
    this.#metadata = this.#known.get(key);
    if (this.#metadata) return;
    this.#open(events.uri, (file) => {
      this.#metadata = new EventMetadata(JSON.parse(new TextDecoder().decode(file)));
      this.#known.add(key, this.#metadata);
    });
  }

  #open(uri: string, take: (bytes: Uint8Array) => void): void {
    const found = uri_pattern.exec(uri)?.groups?.['path'];
    if (found === undefined) throw new RangeError(`the vehicle does not serve ${uri}`);
    const path = found.startsWith('/') ? found : `/${found}`;
    this.#file = new VehicleFile(path, packed_bytes_max);
    this.#take = (bytes) => take(path.endsWith('.xz') ? unpackXz(bytes, file_bytes_max) : bytes);
  }

  /** What a vehicle sends is not trusted: whatever is wrong with a file, events stay numbers. */
  #guard(deed: () => void, now_ms: number): void {
    try {
      deed();
    } catch (error) {
      this.#file = undefined;
      this.#failed_ms = now_ms;
      this.#onFault(error instanceof Error ? error.message : String(error));
    }
  }
}
