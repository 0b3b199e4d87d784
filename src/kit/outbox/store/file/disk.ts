/** The disk below the buffer file: how much is free, and the reserve that makes room when it is full. */
import { fsyncSync, readSync, rmSync, statfsSync, statSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { withFile } from '../../../../platform/files/private-file.ts';
import { diskFault, unlessRefused } from '../../disk-fault.ts';
import type { DiskHealth } from '../../protocol.ts';
import { checkpoint_pages, type Handle } from '../schema.ts';
import { texts } from '../../texts.ts';
import type { Shortage } from '../tables/retention.ts';

/**
 * In WAL mode even a DELETE needs free blocks. The reserve is a file that is given up first, so that there is room to
 * delete with when other programs have filled the disk.
 */
export const reserve_bytes = 4 * 1024 * 1024;
/** With less free space than this, the reserve alone would fill the disk. */
const reserve_needs_free_bytes = 2 * reserve_bytes;
const look_every_ms = 2_000;
/** Free pages beyond this are returned to the file system. */
const free_pages_max = 16_384;
const vacuum_pages = 256;

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

  /** Reads the free bytes for this user. Throws the file system's errors. */
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
      const wanted = Math.max(reserve_bytes + reserve_needs_free_bytes, this.#free_bytes_min);
      const detail = texts.reserve_used(this.#dir, toMegabytes(wanted));
      return { state: 'full', detail };
    }
    const [free, min] = [toMegabytes(this.#free_bytes), toMegabytes(this.#free_bytes_min)];
    return { state: 'full', detail: texts.space_short(this.#dir, free, min) };
  }

  /** Makes the reserve if it is missing and the disk has room for it. */
  keepReserve(): void {
    if (this.#hasReserve() || this.#free_bytes < reserve_bytes + reserve_needs_free_bytes) return;
    try {
      writeZeros(this.#reserve);
      this.#gave_up_reserve = false;
    } catch (error) {
      // Another program filled the disk first: the next check retries.
      if (!diskFault(error)) throw error;
      this.releaseReserve();
    }
  }

  releaseReserve(): void {
    this.#gave_up_reserve ||= this.#hasReserve();
    // A disk that fails to remove a file shows the failure at the next commit.
    unlessRefused(() => rmSync(this.#reserve, { force: true }), undefined);
  }

  #hasReserve(): boolean {
    return statSync(this.#reserve, { throwIfNoEntry: false })?.size === reserve_bytes;
  }
}

/** Real blocks: a file with holes would reserve nothing. */
function writeZeros(path: string): void {
  withFile(path, 'w', (fd) => {
    const block = Buffer.alloc(reserve_bytes / 16);
    for (let written = 0; written < reserve_bytes; written += block.length) writeSync(fd, block);
    fsyncSync(fd);
  });
}

/** The first bytes of a file, as many as there are. */
export function readHead(path: string, bytes: number): Buffer {
  const head = Buffer.alloc(bytes);
  return withFile(path, 'r', (fd) => head.subarray(0, readSync(fd, head, 0, bytes, 0)));
}

/** As the configuration and the other commands count them. */
function toMegabytes(bytes: number): number {
  return Math.round(bytes / 1e6);
}

/** Bytes of a database and its log. */
export function fileBytes(file: string): number {
  const bytesOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  return bytesOf(file) + bytesOf(`${file}-wal`);
}

/** Writes the whole log back into the file; false while another program reads. */
export function emptiesLog(db: Handle): boolean {
  return db.pragma('wal_checkpoint(TRUNCATE)', { simple: true }) === 0;
}

/** After a full disk the log may grow again; pages that have long been free are returned, a few at a time. */
export function tidyPages(db: Handle, shortage: Shortage): void {
  if (shortage !== 'full') db.pragma(`wal_autocheckpoint = ${checkpoint_pages}`);
  const free_pages = Number(db.pragma('freelist_count', { simple: true }));
  if (free_pages > free_pages_max) db.pragma(`incremental_vacuum(${vacuum_pages})`);
}

/** Writes the log back so that its blocks are used again. On a full disk that may fail, and the log still have room. */
export function emptyLog(db: Handle): void {
  try {
    db.pragma('wal_checkpoint(RESTART)');
  } catch (error) {
    if (diskFault(error)?.kind !== 'full') throw error;
  }
}
