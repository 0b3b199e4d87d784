/** Signs and verifies MAVLink 2 frames. See the MAVLink guide, "Message Signing". */
import { createHash } from 'node:crypto';
import { readSecretFile } from '../../../src/toolkit/device/secret-file.ts';
import type { DriverLog } from '../../../src/toolkit/driver/driver.ts';
import { DeviceUnreachable, messageOf } from '../../../src/platform/errors.ts';
import { signature_length } from './frame.ts';
import {
  openSigningClock,
  ticks_per_s,
  type SigningClock,
  type StoredSigningClock,
} from './signing-clock.ts';

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
