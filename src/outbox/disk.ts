/** The disk below the buffer file: how much is free, and the reserve that makes room when it is full. */
import { closeSync, fsyncSync, openSync, rmSync, statfsSync, statSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { diskFault } from './disk-fault.ts';
import type { DiskHealth } from './protocol.ts';

/**
 * In WAL mode even a DELETE needs free blocks. The reserve is a file that is given up first, so that there is room to
 * delete with when somebody else has filled the disk.
 */
export const reserve_bytes = 4 * 1024 * 1024;
/** With less free space than this, the reserve would make the disk full by itself. */
const reserve_needs_free_bytes = 2 * reserve_bytes;
const look_every_ms = 2_000;

/** `short`: less is free than is to be left to others. `full`: the reserve was needed and is not back yet. */
export type Shortage = 'none' | 'short' | 'full';

export class Disk {
  readonly #dir: string;
  readonly #reserve: string;
  readonly #free_bytes_min: number;
  readonly #now: () => number;
  #looked_ms = Number.NEGATIVE_INFINITY;
  #free_bytes = Number.POSITIVE_INFINITY;
  #gave_up_reserve = false;

  constructor(file: string, free_bytes_min: number, now: () => number) {
    this.#dir = dirname(file);
    this.#reserve = `${file}.reserve`;
    this.#free_bytes_min = free_bytes_min;
    this.#now = now;
  }

  /** True at most every few seconds: then it is time to look after the file. */
  isTimeToLook(): boolean {
    if (this.#now() - this.#looked_ms < look_every_ms) return false;
    this.#looked_ms = this.#now();
    return true;
  }

  /** Free bytes for us, asked just now. Throws what the file system throws. */
  look(): number {
    const { bavail, bsize } = statfsSync(this.#dir);
    this.#free_bytes = bavail * bsize;
    return this.#free_bytes;
  }

  /** By the last look. */
  get shortage(): Shortage {
    if (this.#gave_up_reserve) return 'full';
    return this.#free_bytes < this.#free_bytes_min ? 'short' : 'none';
  }

  health(): DiskHealth {
    const { shortage } = this;
    if (shortage === 'none') return { state: 'ok', detail: '' };
    if (shortage === 'full') {
      const detail = `the disk of ${this.#dir} was full: the buffer gives up its oldest messages for new ones until ${toMegabytes(reserve_bytes + reserve_needs_free_bytes)} MB are free`;
      return { state: 'full', detail };
    }
    const free = `${toMegabytes(this.#free_bytes)} MB are free in ${this.#dir}`;
    return {
      state: 'full',
      detail: `${free}, ${toMegabytes(this.#free_bytes_min)} MB are to be left to others: the buffer gives up its oldest messages for new ones`,
    };
  }

  /** Makes the reserve if it is missing and the disk has room for it. */
  keepReserve(): void {
    if (this.#hasReserve() || this.#free_bytes < reserve_bytes + reserve_needs_free_bytes) return;
    try {
      writeZeros(this.#reserve);
      this.#gave_up_reserve = false;
    } catch (error) {
      // Somebody else was faster: the next look tries again.
      if (!diskFault(error)) throw error;
      this.giveUpReserve();
    }
  }

  giveUpReserve(): void {
    this.#gave_up_reserve ||= this.#hasReserve();
    try {
      rmSync(this.#reserve, { force: true });
    } catch (error) {
      // A disk that does not even remove a file tells so at the next commit.
      if (!diskFault(error)) throw error;
    }
  }

  #hasReserve(): boolean {
    return statSync(this.#reserve, { throwIfNoEntry: false })?.size === reserve_bytes;
  }
}

/** Real blocks: a file with holes would reserve nothing. */
function writeZeros(path: string): void {
  const fd = openSync(path, 'w', 0o600);
  try {
    const block = Buffer.alloc(reserve_bytes / 16);
    for (let written = 0; written < reserve_bytes; written += block.length) writeSync(fd, block);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

function toMegabytes(bytes: number): number {
  return Math.round(bytes / (1024 * 1024));
}
