/**
 * The side of an autopilot in MAVLink FTP (PX4 mavlink_ftp.cpp, ArduPilot GCS_FTP.cpp): reads of one file at a time, lists of folders, and
 * checksums. Each answer may be lost on the way.
 */
import { crc32 } from 'node:zlib';

const header_length = 12;
const part_max = 239;
const codes = {
  terminate: 1,
  list: 3,
  open: 4,
  read: 5,
  checksum: 14,
  acknowledged: 128,
  refused: 129,
} as const;
const errors = { no_sessions: 5, end_of_file: 6, not_found: 10 } as const;

export class VehicleFiles {
  /** By path. */
  readonly files: Record<string, Uint8Array>;
  /** How often a file was closed. */
  closed = 0;
  /** Each so many'th answer is lost; 0: none. */
  lose_every = 0;
  #answers = 0;
  #open: Uint8Array | undefined;

  constructor(files: Record<string, Uint8Array>) {
    this.files = files;
  }

  /** Returns the answer to a request; undefined: it is lost. */
  answer(request: readonly number[]): readonly number[] | undefined {
    const view = new DataView(Uint8Array.from(request).buffer);
    const opcode = view.getUint8(3);
    const found = this.#execute(opcode, view);
    const answer = new Uint8Array(header_length + part_max);
    const of = new DataView(answer.buffer);
    of.setUint16(0, (view.getUint16(0, true) + 1) & 0xffff, true);
    const isError = typeof found === 'number';
    const data = isError ? Uint8Array.of(found) : found;
    answer.set([0, isError ? codes.refused : codes.acknowledged, data.length, opcode], 2);
    answer.set(data, header_length);
    this.#answers += 1;
    return this.lose_every > 0 && this.#answers % this.lose_every === 0 ? undefined : [...answer];
  }

  #execute(opcode: number, view: DataView): Uint8Array | number {
    const path = new TextDecoder().decode(new Uint8Array(view.buffer, header_length, view.getUint8(4)));
    if (opcode === codes.list) return this.#list(path, view.getUint32(8, true));
    if (opcode === codes.checksum) return this.#checksum(path);
    if (opcode === codes.open) {
      const file = this.files[path];
      if (!file) return errors.not_found;
      this.#open = file;
      return new Uint8Array(4);
    }
    if (opcode === codes.terminate) {
      this.closed += 1;
      this.#open = undefined;
      return new Uint8Array();
    }
    if (!this.#open) return errors.no_sessions;
    const at = view.getUint32(8, true);
    return at >= this.#open.length ? errors.end_of_file : this.#open.subarray(at, at + part_max);
  }

  /** Entries from that one on, as many as fit. */
  #list(folder: string, from: number): Uint8Array | number {
    const below = Object.entries(this.files).filter(([path]) => path.startsWith(`${folder}/`));
    const entries = new Set(
      below.map(([path, { length }]) => {
        const [name = '', ...deeper] = path.slice(folder.length + 1).split('/');
        return deeper.length > 0 ? `D${name}\0` : `F${name}\t${length}\0`;
      }),
    );
    let listed = '';
    for (const entry of [...entries].slice(from))
      if (listed.length + entry.length < part_max) listed += entry;
      else break;
    return listed === '' ? errors.end_of_file : new TextEncoder().encode(listed);
  }

  /** Neither begun nor ended with an inversion, as both autopilots compute it. */
  #checksum(path: string): Uint8Array | number {
    const file = this.files[path];
    if (!file) return errors.not_found;
    return new Uint8Array(Uint32Array.of(~crc32(file, 0xffff_ffff)).buffer);
  }
}
