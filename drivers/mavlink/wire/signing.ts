/** Signs and verifies MAVLink 2 frames. See the MAVLink guide, "Message Signing". */
import { createHash } from 'node:crypto';
import { readSecretFile } from '../../../src/toolkit/device/secret-file.ts';
import type { DriverLog } from '../../../src/toolkit/driver/driver.ts';
import { DeviceUnreachable, messageOf } from '../../../src/platform/errors.ts';
import { signature_length } from './frame.ts';
import { readStateText } from '../../../src/toolkit/device/state-file.ts';
import { replaceFile } from '../../../src/platform/replace-file.ts';
import { every } from '../../../src/platform/time.ts';
import { texts } from './texts.ts';

// The signing clock: 10 microsecond ticks since 2015 that never repeat and never go back, whatever the time of
// day does. Receivers take a repeated tick for a replay, and a clock in the past for an old recording.

export const ticks_per_s = 100_000;
const epoch_ms = Date.UTC(2015, 0, 1);
const ticks_max = 2 ** 48 - 1;
const day_ticks = 86_400 * ticks_per_s;
/**
 * A clock that is further ahead of the time of day is not followed: every vehicle would follow it through this kit, and at the last
 * tick no frame can be signed any more. A kit without a battery-backed clock may be years behind.
 */
const ahead_max_ticks = 3_650 * day_ticks;
/** No time of day before this program was written is right. */
const earliest_ticks = ticksOf(Date.UTC(2026, 0, 1));

/** The file is ahead of the clock by up to this much, so that no tick repeats after a power cut. */
const reserve_ticks = 60 * ticks_per_s;
const store_every_ms = 10_000;
/** Between writes because of senders that are ahead. */
const leap_every_ms = 1_000;

export interface SigningClock {
  /** Returns a new tick that no frame has used. */
  next(): number;
  /** Returns the current tick without using it. */
  now(): number;
  /** No frame that was accepted before this start has a later tick. */
  readonly started_at: number;
  /** Whether a clock is so far ahead that it is not followed. */
  isTooFarAhead(ticks: number): boolean;
  /** Advances to the tick of a genuine frame: ours must be later, or its sender ignores us. */
  learn(ticks: number, sysid: number): void;
}

interface StoredSigningClock extends SigningClock {
  /** Days by which it is ahead of the time of day. */
  ahead_days(): number;
  /** Stores it as it is when no frame will be signed or verified any more, so that the next start need not skip time. */
  close(): Promise<void>;
}

interface ClockNeeds {
  readonly signal: AbortSignal;
  readonly log: DriverLog;
}

/** Opens the clock at the tick in the file. Without a readable file it starts at the time of day. */
export async function openSigningClock(
  file: string,
  { signal, log }: ClockNeeds,
): Promise<StoredSigningClock> {
  const clock = new Clock(await storedTicks(file, log));
  let reserved = 0;
  let leapt_ms = Number.NEGATIVE_INFINITY;
  let isFailing = false;
  let hasWarned = false;
  const store = async (upTo: number): Promise<void> => {
    try {
      await replaceFile(file, `${upTo}\n`);
      reserved = upTo;
      isFailing = false;
    } catch (err) {
      if (!isFailing) {
        log.warn({ err, file }, texts.clock_write_failed);
      }
      isFailing = true;
    }
  };
  let isStoring = false;
  let stored = Promise.resolve();
  const reserve = (): void => {
    if (isStoring || clock.now() < reserved - reserve_ticks / 2) return;
    isStoring = true;
    stored = store(clock.now() + reserve_ticks).finally(() => {
      isStoring = false;
    });
  };
  const warnIfAhead = (facts: { readonly system_id?: number }): void => {
    const ahead_days = clock.ahead_days();
    if (hasWarned || ahead_days < 1) return;
    hasWarned = true;
    log.warn({ ...facts, ahead_days }, texts.clock_ahead);
  };
  // Who was ahead in an earlier run is not known.
  warnIfAhead({});
  reserve();
  await stored;
  every(store_every_ms, signal, reserve);
  return {
    next: () => clock.next(),
    now: () => clock.now(),
    started_at: clock.started_at,
    isTooFarAhead: (ticks) => clock.isTooFarAhead(ticks),
    learn(ticks, sysid) {
      clock.learn(ticks);
      // What it has accepted must be stored before a power cut, or it would be accepted again.
      if (ticks > reserved && performance.now() - leapt_ms >= leap_every_ms && !signal.aborted) {
        leapt_ms = performance.now();
        reserve();
      }
      warnIfAhead({ system_id: sysid });
    },
    ahead_days: () => clock.ahead_days(),
    async close() {
      await stored;
      await store(clock.now());
    },
  };
}

class Clock {
  readonly started_at: number;
  #last: number;

  constructor(last: number) {
    this.started_at = last;
    this.#last = last;
  }

  next(): number {
    this.#last = Math.min(Math.max(this.#timeOfDay(), this.#last + 1), ticks_max);
    return this.#last;
  }

  now(): number {
    return Math.max(this.#timeOfDay(), this.#last);
  }

  learn(ticks: number): void {
    this.#last = Math.max(this.#last, ticks);
  }

  isTooFarAhead(ticks: number): boolean {
    return ticks > Math.max(this.#timeOfDay(), earliest_ticks) + ahead_max_ticks;
  }

  ahead_days(): number {
    return Math.max(0, Math.floor((this.#last - this.#timeOfDay()) / day_ticks));
  }

  #timeOfDay(): number {
    return Math.max(0, ticksOf(Date.now()));
  }
}

function ticksOf(time_ms: number): number {
  return Math.floor((time_ms - epoch_ms) * (ticks_per_s / 1_000));
}

async function storedTicks(file: string, log: DriverLog): Promise<number> {
  const text = await readStateText(file);
  if (text === undefined) return 0;
  const ticks = Number(text);
  if (Number.isSafeInteger(ticks) && ticks >= 0 && ticks <= ticks_max) return ticks;
  log.warn({ file }, texts.clock_damaged);
  return 0;
}

/** Appends the signature to a frame whose flag and checksum already include it. */
export type SignFrame = (frame: Uint8Array) => Uint8Array;

export interface Signing {
  /** Returns the signer of one link. Links have different ids (0 to 255), since frames of two may be reordered. */
  signer(link_id: number): SignFrame;
  /** Returns `genuine` once for each frame that is signed with our key. */
  verify(bytes: Uint8Array): Verdict;
}

/**
 * `repeated`: received before, or by an earlier run, or it may be. `old`: signed more than a minute before the newest one. `ahead`: by
 * a clock that is not followed.
 */
export type Verdict = 'ahead' | 'genuine' | 'old' | 'other_key' | 'repeated';

export interface StoredSigning extends Signing, Pick<StoredSigningClock, 'ahead_days' | 'close'> {}

export interface SigningOptions {
  /** File with 64 hexadecimal digits, or with a passphrase of which the SHA-256 is the key, as in Mission Planner. */
  readonly key_file: string;
  /** File that stores the clock across restarts; its directory must be writable. */
  readonly clock_file: string;
}

export interface SigningNeeds {
  readonly signal: AbortSignal;
  readonly log: DriverLog;
}

/** Opens key and clock; throws DeviceUnreachable if the key cannot be read. Stores the clock until the signal aborts. */
export async function openSigning(options: SigningOptions, needs: SigningNeeds): Promise<StoredSigning> {
  const key = await readKey(options.key_file);
  const clock = await openSigningClock(options.clock_file, needs);
  return {
    ...signingWith(key, clock),
    ahead_days: () => clock.ahead_days(),
    close: async () => clock.close(),
  };
}

/** A stream that starts further back than this is a replay. */
const old_ticks = 60 * ticks_per_s;
const streams_max = 4_096;

/** Signs and verifies with a key of 32 bytes. */
export function signingWith(key: Uint8Array, clock: SigningClock): Signing {
  /** Highest timestamp of each link id, system and component. */
  const streams = new Map<number, number>();
  return {
    signer: (link_id) => (frame) => {
      const signed = new Uint8Array(frame.length + signature_length);
      signed.set(frame);
      signed[frame.length] = link_id;
      writeTicks(signed, frame.length + 1, clock.next());
      signed.set(digest(key, signed), signed.length - digest_length);
      return signed;
    },
    verify: (bytes) => {
      const at = bytes.length - signature_length;
      const ticks = readTicks(bytes, at + 1);
      const [sysid, stream] = senderOf(bytes);
      if (!isSignedWith(key, bytes)) return 'other_key';
      const last = streams.get(stream);
      if (ticks < (last ?? clock.now()) - old_ticks) return 'old';
      // The streams of an earlier run are not stored: none of its frames has a later tick than its clock had.
      if (ticks <= (last ?? clock.started_at)) return 'repeated';
      if (clock.isTooFarAhead(ticks)) return 'ahead';
      if (last === undefined && streams.size >= streams_max) return 'repeated';
      streams.set(stream, ticks);
      clock.learn(ticks, sysid);
      return 'genuine';
    },
  };
}

/** Derives the key from a passphrase, as ground stations do. */
export function keyOfPassphrase(passphrase: string): Uint8Array {
  return createHash('sha256').update(passphrase).digest();
}

/** A file that a person corrects is read again within a minute: a wrong key locks no account. */
async function readKey(path: string): Promise<Uint8Array> {
  const text = await readSecretFile('signing.key_file', path).catch((cause: unknown) => {
    throw new DeviceUnreachable(messageOf(cause), { cause });
  });
  const secret = text.trim();
  return /^[0-9a-f]{64}$/i.test(secret) ? Buffer.from(secret, 'hex') : keyOfPassphrase(secret);
}

const digest_length = 6;
const ticks_length = 6;

/** The stream: link id, system and component. */
function senderOf(bytes: Uint8Array): readonly [sysid: number, stream: number] {
  const [sysid = 0, compid = 0] = bytes.subarray(5, 7);
  const link_id = bytes[bytes.length - signature_length] ?? 0;
  return [sysid, (link_id << 16) | (sysid << 8) | compid];
}

function isSignedWith(key: Uint8Array, bytes: Uint8Array): boolean {
  const at = bytes.length - digest_length;
  return digest(key, bytes).every((byte, index) => byte === bytes[at + index]);
}

/** Hashes the whole frame without the digest. */
function digest(key: Uint8Array, signed: Uint8Array): Uint8Array {
  const hash = createHash('sha256')
    .update(key)
    .update(signed.subarray(0, signed.length - digest_length));
  return hash.digest().subarray(0, digest_length);
}

function readTicks(bytes: Uint8Array, at: number): number {
  return Buffer.from(bytes.buffer, bytes.byteOffset + at, ticks_length).readUIntLE(0, ticks_length);
}

function writeTicks(bytes: Uint8Array, at: number, ticks: number): void {
  Buffer.from(bytes.buffer, bytes.byteOffset + at, ticks_length).writeUIntLE(ticks, 0, ticks_length);
}
