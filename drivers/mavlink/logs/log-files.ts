/**
 * The file of a log on the vehicle, by MAVLink FTP. PX4 1.16 and 1.17 end such a session after some seconds (PX4-Autopilot#26780), so that logs
 * are read by their own messages; FTP tells whether what was read is the file, and reads it where it is not.
 */
import type { FileHandle } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import {
  type FtpAnswer,
  ftp,
  ftp_end_of_file,
  FtpExchange,
  type FtpRequest,
} from '../reports/vehicle-file.ts';
import type { Addressee } from '../vehicles/addressee.ts';

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

/** Resolves with the path of the only log of this size; undefined: the vehicle serves no files, or several fit. */
export async function pathOfLog(
  to: Addressee,
  bytes: number,
  signal: AbortSignal,
): Promise<string | undefined> {
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
export async function isEqual(
  to: Addressee,
  path: string,
  { file, signal }: Checked,
): Promise<boolean | undefined> {
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
export async function readByFtp(
  to: Addressee,
  path: string,
  { file, signal, isOnGround }: Checked & { readonly isOnGround: () => boolean },
): Promise<boolean> {
  const exchange = new FtpExchange({ sequence: first_sequence });
  const opened = await ask(to, exchange, { opcode: ftp.open, data: encoded(path) }, signal);
  if (!opened || opened.error !== undefined) return false;
  const { session } = opened;
  await file.truncate(0);
  let error: number | undefined;
  for (let offset = 0; error === undefined && isOnGround();) {
    const answer = await ask(to, exchange, { opcode: ftp.read, session, offset }, signal);
    if (!answer) return false;
    ({ error } = answer);
    if (error === undefined) await file.write(answer.data);
    offset += answer.data.length;
  }
  await ask(to, exchange, { opcode: ftp.terminate, session }, signal);
  return error === ftp_end_of_file;
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
  const target = { target_network: 0, target_system: contact.sysid, target_component: contact.compid };
  let latest = contact.latest.last('FILE_TRANSFER_PROTOCOL');
  exchange.ask(request);
  const answer = await changes.until(
    () => {
      const now_ms = performance.now();
      const payload = exchange.next(now_ms);
      if (payload) contact.send('FILE_TRANSFER_PROTOCOL', { ...target, payload });
      const message = contact.latest.last('FILE_TRANSFER_PROTOCOL');
      const isNew = message !== undefined && message !== latest && contact.isToUs(message);
      latest = message;
      return (
        (isNew && exchange.receive(message.payload)) || (exchange.isUnanswered(now_ms) ? 'none' : undefined)
      );
    },
    answers_max_ms,
    signal,
  );
  return answer === 'none' ? undefined : answer;
}

function encoded(path: string): Uint8Array {
  return new TextEncoder().encode(path);
}
