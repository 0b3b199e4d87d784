/**
 * The last epoch of this kit in two small files: beside the buffer file, for when that cannot be read, and in the
 * runtime directory, which can be written while the disk cannot and lasts until the next boot.
 */
import { closeSync, fsyncSync, openSync, renameSync, rmSync, statSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { diskFault } from '../store/file/disk-fault.ts';
import { epochNumber } from '../store/row-shapes.ts';
import { FileRefused } from '../../errors.ts';
import { readTextUpToSync, small_bytes_max } from '../../platform/bounded-file.ts';

const epochs_of_run_max = 64;

export class EpochMemory {
  readonly #file: string;
  readonly #beside: string;
  readonly #runtime: string | undefined;
  #of_run: readonly number[] = [];

  constructor(file: string, runtime_dir: string | undefined) {
    this.#file = file;
    this.#beside = `${file}.epoch`;
    this.#runtime = runtime_dir === undefined ? undefined : join(runtime_dir, 'epoch');
  }

  /** Of the file beside the buffer; 0 when there is none. */
  get onDisk(): number {
    return readEpoch(this.#beside);
  }

  /** Of this boot; 0 when none was kept. */
  get ofBoot(): number {
    return this.#runtime === undefined ? 0 : readEpoch(this.#runtime);
  }

  get last(): number {
    return Math.max(this.onDisk, this.ofBoot);
  }

  /** The newest epochs of this run: they are added to a file that could not be written meanwhile. */
  get ofRun(): readonly number[] {
    return this.#of_run;
  }

  /** Keeps an epoch wherever that is possible; answers whether it will be known after the next boot. */
  keep(epoch: number): boolean {
    if (!this.#of_run.includes(epoch)) this.#of_run = [...this.#of_run, epoch].slice(-epochs_of_run_max);
    if (this.#runtime !== undefined) replace(this.#runtime, epoch);
    return replace(this.#beside, epoch);
  }

  /** When the disk was last written to; undefined when that cannot be read. */
  writtenMs(): number | undefined {
    const times = [this.#file, `${this.#file}-wal`, this.#beside].flatMap((path) => mtimeOf(path) ?? []);
    return times.length > 0 ? Math.max(...times) : undefined;
  }
}

function readEpoch(path: string): number {
  try {
    const epoch = Number(readTextUpToSync(path, small_bytes_max).trim());
    return epochNumber(epoch) ? epoch : 0;
  } catch (error) {
    if (!(error instanceof FileRefused) && !diskFault(error)) throw error;
    return 0;
  }
}

function mtimeOf(path: string): number | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })?.mtimeMs;
  } catch (error) {
    if (!diskFault(error)) throw error;
    return undefined;
  }
}

/** Whenever the power fails, the old number is there or the new one. False when the disk refuses. */
function replace(path: string, epoch: number): boolean {
  const fresh = `${path}.new`;
  try {
    withFile(fresh, 'w', (fd) => {
      writeSync(fd, `${epoch}\n`);
      fsyncSync(fd);
    });
    renameSync(fresh, path);
    withFile(dirname(path), 'r', fsyncSync);
    return true;
  } catch (error) {
    if (!diskFault(error)) throw error;
    removeIfPossible(fresh);
    return false;
  }
}

function withFile(path: string, flags: 'r' | 'w', use: (fd: number) => void): void {
  const fd = openSync(path, flags, 0o600);
  try {
    use(fd);
  } finally {
    closeSync(fd);
  }
}

function removeIfPossible(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch (error) {
    if (!diskFault(error)) throw error;
  }
}
