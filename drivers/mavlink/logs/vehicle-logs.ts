/**
 * Transfers flight logs of one vehicle to the kit, which sends them to the cloud: slowly, while the vehicle is on the ground, and further
 * from where it was cut, also after a restart of the kit.
 */
import { type FileHandle, open, readdir, rm } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import type { DriverHost } from '../../../src/toolkit/driver/driver.ts';
import type { droneFeeds } from '../../../src/contract/drone-feeds.ts';
import { messageOf } from '../../../src/platform/errors.ts';
import { StateFile, stateFileName } from '../../../src/toolkit/device/state-file.ts';
import { z } from 'zod';
import { sleep } from '../../../src/platform/time.ts';
import type { MavlinkOptions } from '../options.ts';
import type { Addressee, FlightLogs, LogEntry, LoggingVehicle } from '../vehicles/addressee.ts';
import { endReading, listLogs, readLog } from './log-messages.ts';
import { texts } from './texts.ts';
import { crc32 } from 'node:zlib';
import {
  ftp,
  ftp_end_of_file,
  type FtpAnswer,
  FtpExchange,
  type FtpRequest,
  readVehicleFile,
} from '../reports/vehicle-file.ts';

const folders = { ardupilot: ['/APM/LOGS'], px4: ['/fs/microsd/log'], other: [] } as const;
/** Apart from those of the metadata. */
const first_sequence = 0x8000;
/** An autopilot reads the whole file for it. */
const checksum_wait_ms = 2_000;
const checksum_bytes_per_s = 200_000;
const answers_max_ms = 600_000;
/** A PX4 has a folder for each day. */
const folders_max = 30;
const entries_max = 2_000;
const chunk_bytes = 64 * 1024;

/**
 * Resolves with the path of the only log of this size; undefined: the vehicle serves no files, or several fit. PX4 1.16 and 1.17 end
 * a session of FTP after some seconds (PX4-Autopilot#26780), so that logs are read by their own messages; FTP tells whether what was
 * read is the file, and reads it where it is not.
 */
async function pathOfLog(to: Addressee, bytes: number, signal: AbortSignal): Promise<string | undefined> {
  const found: string[] = [];
  const open: string[] = [...folders[to.contact.autopilot]];
  for (let looked = 0; looked < folders_max; looked += 1) {
    const folder = open.shift();
    if (folder === undefined) break;
    const entries = await list(to, folder, signal);
    for (const [, type, name = '', size] of entries.map(
      (entry) => /^([DF])([^\t]+)(?:\t(\d+))?$/u.exec(entry) ?? [],
    ))
      if (type === 'F' && Number(size) === bytes) found.push(`${folder}/${name}`);
    // The newest day first.
    const below = entries.filter((entry) => entry.startsWith('D') && !entry.startsWith('D.'));
    open.push(
      ...below
        .map((entry) => `${folder}/${entry.slice(1)}`)
        .toSorted()
        .toReversed(),
    );
  }
  return found.length === 1 ? found[0] : undefined;
}

interface Checked {
  /** Here. */
  readonly file: FileHandle;
  readonly signal: AbortSignal;
}

/** Whether the file there is the one here; undefined: the vehicle does not say. */
async function isEqual(to: Addressee, path: string, { file, signal }: Checked): Promise<boolean | undefined> {
  const { size } = await file.stat();
  const wait_ms = checksum_wait_ms + (1_000 * size) / checksum_bytes_per_s;
  const exchange = new FtpExchange({ sequence: first_sequence, wait_ms });
  const answer = await ask(to, exchange, { opcode: ftp.checksum, data: encoded(path) }, signal);
  if (answer?.data.length !== 4) return undefined;
  const there = new DataView(answer.data.buffer).getUint32(0, true);
  return there === (await checksumOf(file));
}

/**
 * Reads the file from its beginning, each part when the one before has come, as long as the vehicle stays on the ground. Resolves with
 * whether all of it came.
 */
async function readByFtp(
  to: Addressee,
  path: string,
  { file, signal, isOnGround }: Checked & { readonly isOnGround: () => boolean },
): Promise<boolean> {
  const exchange = new FtpExchange({ sequence: first_sequence });
  await file.truncate(0);
  const end = await readVehicleFile(
    async (request) => ask(to, exchange, request, signal),
    path,
    async (data) => {
      await file.write(data);
      return isOnGround();
    },
  );
  return end === ftp_end_of_file;
}

/** Neither begun nor ended with an inversion, as ArduPilot (GCS_FTP.cpp) and PX4 (mavlink_ftp.cpp) compute it. */
async function checksumOf(file: FileHandle): Promise<number> {
  let inverted = 0xffff_ffff;
  const buffer = Buffer.alloc(chunk_bytes);
  for (let at = 0, read = -1; read !== 0; at += read) {
    ({ bytesRead: read } = await file.read(buffer, 0, chunk_bytes, at));
    inverted = crc32(buffer.subarray(0, read), inverted);
  }
  return ~inverted >>> 0;
}

async function list(to: Addressee, folder: string, signal: AbortSignal): Promise<readonly string[]> {
  const exchange = new FtpExchange({ sequence: first_sequence });
  const entries: string[] = [];
  while (entries.length < entries_max) {
    const request = { opcode: ftp.list, offset: entries.length, data: encoded(folder) };
    const answer = await ask(to, exchange, request, signal);
    if (!answer || answer.error !== undefined || answer.data.length === 0) break;
    entries.push(...new TextDecoder().decode(answer.data).replace(/\0$/u, '').split('\0'));
  }
  return entries;
}

/** Resolves with the answer; undefined: there is none. */
async function ask(
  { contact, changes }: Addressee,
  exchange: FtpExchange,
  request: FtpRequest,
  signal: AbortSignal,
): Promise<FtpAnswer | undefined> {
  let latest = contact.latest.last('FILE_TRANSFER_PROTOCOL');
  const answer = exchange.ask(request);
  await changes.until(
    () => {
      const payload = exchange.next(performance.now());
      if (payload) contact.send('FILE_TRANSFER_PROTOCOL', { target_network: 0, ...contact.target, payload });
      const message = contact.latest.last('FILE_TRANSFER_PROTOCOL');
      if (message && message !== latest && contact.isToUs(message)) exchange.receive(message.payload);
      latest = message;
      return exchange.isWaiting ? undefined : true;
    },
    answers_max_ms,
    signal,
  );
  return exchange.isWaiting ? undefined : answer;
}

function encoded(path: string): Uint8Array {
  return new TextEncoder().encode(path);
}

interface VehicleLogsParts extends LoggingVehicle {
  readonly host: Pick<DriverHost<typeof droneFeeds>, 'files' | 'log' | 'stateFile'>;
  readonly options: MavlinkOptions['flight_logs'];
}

/** A serial line of 57,600 baud carries 5,700, of which telemetry takes 700. */
const serial_bytes_per_s = 2_000;
const network_bytes_per_s = 50_000;
/** What is asked for at once: other requests wait that long. */
const window_s = 0.5;
const window_min_bytes = 900;
const window_max_bytes = 9_000;
/** The autopilot still writes to its log. */
const settle_ms = 10_000;
const look_every_ms = 1_000;
const over_max = 32;
/** Without anything for so many windows, though it is there and on the ground, the transfer is given up until the next order. */
const silent_max = 10;
const silent_pause_ms = 5_000;

export class VehicleLogs implements FlightLogs {
  readonly #parts: VehicleLogsParts;
  #transfer: { readonly entry: LogEntry; done: number } | undefined;
  /** Flights that have ended and whose logs are not under way. */
  #due = 0;
  #isFlying = false;
  #isMet = false;
  /** How many they are with the present flight and the log under way: a kit may be switched off in the air, and at a landing. */
  readonly #kept: StateFile<z.ZodInt>;
  readonly #resumed: Promise<void>;
  #isLooking = false;
  /** Logs that were transferred whole, or are gone. */
  readonly #over: LogEntry[] = [];

  constructor(parts: VehicleLogsParts) {
    this.#parts = parts;
    this.#kept = new StateFile(parts.host.stateFile(stateFileName('logs-due', parts.asset_key)), z.int());
    this.#resumed = this.#resume();
  }

  get progress(): string | undefined {
    if (!this.#transfer) return undefined;
    const { entry, done } = this.#transfer;
    return texts.transferring(entry.id, Math.floor((100 * done) / entry.bytes));
  }

  /** It goes on by itself, for hours where the link is slow. */
  begin(entry: LogEntry): void {
    if (this.#transfer) return;
    const { host, asset_key, signal } = this.#parts;
    this.#transfer = { entry, done: 0 };
    const about = { asset_key, log: entry.id, bytes: entry.bytes };
    host.log.info(about, texts.begun);
    this.#run(entry)
      .then(
        (how) => !signal.aborted && host.log.info(about, how),
        (error: unknown) =>
          !signal.aborted && host.log.warn({ ...about, reason: messageOf(error) }, texts.failed),
      )
      .finally(() => {
        this.#transfer = undefined;
        this.#over.push(entry);
        if (this.#over.length > over_max) this.#over.shift();
        this.#keep();
        void this.#beginDue();
      });
  }

  async armed(is: boolean): Promise<void> {
    if (!this.#parts.options.after_flight) return;
    await this.#resumed;
    // A flight that an earlier run has seen begin is counted already.
    if (is && !this.#isMet) this.#due = Math.max(0, this.#due - 1);
    if (!is && this.#isFlying) this.#due += 1;
    this.#isMet = true;
    this.#isFlying = is;
    this.#keep();
    await this.#beginDue();
  }

  #keep(): void {
    const { options, signal } = this.#parts;
    if (!options.after_flight || signal.aborted) return;
    const count = this.#due + Number(this.#isFlying) + (this.#transfer ? 1 : 0);
    void (count > 0 ? this.#kept.write(count) : this.#kept.remove()).catch(() => undefined);
  }

  /** The oldest log of those flights; the others follow it. A flight may also go on with the log of the one before. */
  async #beginDue(): Promise<void> {
    if (this.#due === 0 || this.#transfer || this.#isLooking) return;
    const { signal } = this.#parts;
    this.#isLooking = true;
    await sleep(settle_ms, signal);
    const to = await this.#reach();
    const logs = to && (await listLogs(to, signal));
    this.#isLooking = false;
    if (!logs || this.#transfer) return;
    const isOver = (log: LogEntry): boolean =>
      this.#over.some((each) => isSame(log, each) && log.bytes === each.bytes);
    const due = newestFirst(logs, to)
      .slice(0, this.#due)
      .filter((log) => !isOver(log));
    this.#due = Math.max(0, due.length - 1);
    const next = due.at(-1);
    if (next) this.begin(next);
    this.#keep();
  }

  /** Goes on with what an earlier run of the kit had begun, and with flights that had ended. */
  async #resume(): Promise<void> {
    const { options } = this.#parts;
    const [name = ''] = await this.#names();
    const [id, bytes, time_utc] = name.slice(this.#prefix.length, -part_end.length).split('-').map(Number);
    const isBegun = id !== undefined && bytes !== undefined && time_utc !== undefined;
    // The log that was begun is one of them, unless it was ordered.
    if (options.after_flight) this.#due += (await this.#kept.read()) ?? (isBegun ? 1 : 0);
    if (isBegun) this.begin({ id, bytes, time_utc });
    else void this.#beginDue();
  }

  async #run(entry: LogEntry): Promise<string> {
    const { host, asset_key, name, signal } = this.#parts;
    const path = host.stateFile(`${this.#prefix}${entry.id}-${entry.bytes}-${entry.time_utc}${part_end}`);
    for (const other of await this.#names())
      if (other !== basename(path)) await rm(host.stateFile(other), { force: true });
    const whole = await this.#read(entry, path);
    if (!whole) {
      if (!signal.aborted) await rm(path, { force: true });
      return texts.gone;
    }
    const begun = whole.time_utc === 0 ? new Date() : new Date(whole.time_utc * 1_000);
    const at = begun.toISOString().slice(0, 16).replace('T', ' ').replace(':', '-');
    const end = whole.isPx4 ? 'ulg' : 'bin';
    await host.files.add({
      kind: 'flight_log',
      asset_key,
      name: `${name()} ${at} log ${whole.id}.${end}`,
      at_ms: begun.getTime(),
      content: { path },
    });
    return texts.done;
  }

  /** Resolves with the log once all of it is in the file; undefined: the vehicle no longer has it, or the kit stops. */
  async #read(entry: LogEntry, path: string): Promise<Read['log']> {
    const { signal, name } = this.#parts;
    const file = await open(path, 'a+', 0o600);
    try {
      let { size: at } = await file.stat();
      for (let silent = 0; !signal.aborted && silent < silent_max;) {
        const read = await this.#readOn(entry, { file, at });
        if (read.isGone || read.log) return read.log;
        silent = read.at > at ? 0 : silent + 1;
        at = read.at;
        if (silent > 0) await sleep(silent_pause_ms, signal);
      }
      if (signal.aborted) return undefined;
      throw new Error(texts.no_answer(name()));
    } finally {
      await file.sync();
      await file.close();
    }
  }

  /** Reads until the log is whole, or the vehicle is lost, flies or is silent. */
  async #readOn(entry: LogEntry, { file, at }: Part): Promise<Read> {
    const { signal } = this.#parts;
    const to = await this.#reach();
    // A PX4 sends no log without having listed it, and any vehicle may number it otherwise after a restart.
    const logs = to && (await listLogs(to, signal));
    const log = logs?.find((each) => isSame(each, entry));
    if (!to || !log) return { at, isGone: logs !== undefined };
    const end = await this.#append(to, log, { file, at });
    endReading(to);
    // It may have been written to until now.
    const isWhole = end === log.bytes && log.bytes === (await this.#sizeOf(to, entry));
    if (!isWhole) return { at: end, isGone: false };
    await this.#check(to, log, file);
    return { at: end, isGone: false, log: { ...log, isPx4: to.contact.autopilot === 'px4' } };
  }

  /** Compares what was read with the file, where the vehicle serves it, and reads it anew as a file where it differs (ArduPilot#18297). */
  async #check(to: Addressee, { id, bytes }: LogEntry, file: FileHandle): Promise<void> {
    const { asset_key, host, signal } = this.#parts;
    const path = await pathOfLog(to, bytes, signal);
    const isSameFile = path === undefined ? undefined : await isEqual(to, path, { file, signal });
    if (path === undefined || isSameFile !== false) return;
    host.log.warn({ asset_key, log: id, path }, texts.differs);
    const isOnGround = (): boolean => this.#isOnGround();
    const isRead = await readByFtp(to, path, { file, signal, isOnGround });
    if (isRead && (await isEqual(to, path, { file, signal })) === true) return;
    await file.truncate(0);
    throw new Error(texts.differs);
  }

  /** Appends to the file until it is whole, or nothing more comes; returns its length then. */
  async #append(to: Addressee, log: LogEntry, { file, at }: Part): Promise<number> {
    const { options, signal } = this.#parts;
    const { bytes_per_s = usualRate(to) } = options;
    const window = Math.min(window_max_bytes, Math.max(window_min_bytes, bytes_per_s * window_s));
    const hasRestarted = to.watchStart();
    let end = at;
    while (end < log.bytes && !signal.aborted && !hasRestarted() && this.#isOnGround()) {
      const begun_ms = performance.now();
      const count = Math.min(Math.floor(window), log.bytes - end);
      const bytes = await readLog(to, { id: log.id, from: end, count }, signal);
      if (!bytes) break;
      await file.write(bytes);
      end += count;
      if (this.#transfer) this.#transfer.done = end;
      const pause_ms = (1_000 * count) / bytes_per_s - (performance.now() - begun_ms);
      if (pause_ms > 0) await sleep(pause_ms, signal);
    }
    return end;
  }

  async #sizeOf(to: Addressee, entry: LogEntry): Promise<number | undefined> {
    const logs = await listLogs(to, this.#parts.signal);
    endReading(to);
    return logs?.find((each) => isSame(each, entry))?.bytes;
  }

  /** Resolves with the vehicle once it can be reached, on the ground; undefined: the kit stops. */
  async #reach(): Promise<Addressee | undefined> {
    const { address, signal } = this.#parts;
    while (!signal.aborted) {
      const found = address();
      if ('to' in found && this.#isOnGround()) return found.to;
      await sleep(look_every_ms, signal);
    }
    return undefined;
  }

  #isOnGround(): boolean {
    const found = this.#parts.address();
    return 'to' in found && found.situation.armed === false && !found.situation.is_high_latency;
  }

  /** The names of its files, of which one transfer after the other has one. */
  async #names(): Promise<readonly string[]> {
    const dir = dirname(this.#parts.host.stateFile(this.#prefix));
    const all = await readdir(dir).catch((): string[] => []);
    return all.filter((name) => name.startsWith(this.#prefix) && name.endsWith(part_end));
  }

  get #prefix(): string {
    return `log-${this.#parts.asset_key.replaceAll(/[^\w.-]/gu, '_')}--`;
  }
}

const part_end = '.part';

/** What is there of a log, as far as `at`. */
interface Part {
  readonly file: FileHandle;
  readonly at: number;
}

interface Read {
  readonly at: number;
  readonly isGone: boolean;
  /** It is whole. */
  readonly log?: LogEntry & { readonly isPx4: boolean };
}

/** The newest by the time of a PX4, whose list has no order, and by the number of an ArduPilot. */
export function newestOf(logs: readonly LogEntry[], to: Addressee): LogEntry | undefined {
  return newestFirst(logs, to)[0];
}

function newestFirst(logs: readonly LogEntry[], { contact }: Addressee): readonly LogEntry[] {
  const isPx4 = contact.autopilot === 'px4';
  return logs.toSorted((a, b) => (isPx4 ? b.time_utc - a.time_utc : 0) || b.id - a.id);
}

/** By its time, or, where that was not known, by its number and size. */
function isSame(log: LogEntry, entry: LogEntry): boolean {
  if (entry.time_utc !== 0) return log.time_utc === entry.time_utc && log.bytes >= entry.bytes;
  return log.time_utc === 0 && log.id === entry.id && log.bytes >= entry.bytes;
}

function usualRate({ contact }: Addressee): number {
  return contact.peer.startsWith('/') ? serial_bytes_per_s : network_bytes_per_s;
}
