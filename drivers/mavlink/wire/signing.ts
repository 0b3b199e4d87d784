/** Signs and verifies MAVLink 2 frames. See the MAVLink guide, "Message Signing". */
import { createHash } from 'node:crypto';
import { readSecretFile } from '../../../src/device/secret-file.ts';
import type { DriverLog } from '../../../src/driver/driver.ts';
import { DeviceUnreachable, messageOf } from '../../../src/errors.ts';
import { signature_length } from './frame.ts';
import { openSigningClock, ticks_per_s, type SigningClock } from './signing-clock.ts';

/** Appends the signature to a frame whose flag and checksum already include it. */
export type SignFrame = (frame: Uint8Array) => Uint8Array;

export interface Signing {
  /** Returns the signer of one link. Links have different ids (0 to 255), since frames of two may be reordered. */
  signer(link_id: number): SignFrame;
  /** Returns true once for each genuine frame; false for another key and for repeats. */
  verify(bytes: Uint8Array): boolean;
}

export interface StoredSigning extends Signing {
  /** See `StoredSigningClock`. */
  saved(): Promise<void>;
}

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
  return { ...signingWith(key, clock), saved: async () => clock.saved() };
}

/** A stream that starts further back than this is a replay. */
const new_stream_back_ticks = 60 * ticks_per_s;
const streams_max = 4_096;

/** Signs and verifies with a key of 32 bytes. */
export function signingWith(key: Uint8Array, clock: Pick<SigningClock, 'next' | 'now' | 'learn'>): Signing {
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
      const stream = ((bytes[at] ?? 0) << 16) | ((bytes[5] ?? 0) << 8) | (bytes[6] ?? 0);
      const last = streams.get(stream);
      if (last === undefined ? ticks < clock.now() - new_stream_back_ticks : ticks <= last) return false;
      if (!digest(key, bytes).every((byte, index) => byte === bytes[bytes.length - digest_length + index])) {
        return false;
      }
      if (last === undefined && streams.size >= streams_max) return false;
      streams.set(stream, ticks);
      clock.learn(ticks);
      return true;
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
