/** Keeps the last satellite fix of the kit in a small file, so that a restart does not forget where the kit is. */
import { closeSync, fsyncSync, mkdirSync, openSync, renameSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { z } from 'zod';
import { altitude_m, latitude, longitude } from '../../contract/assets.ts';
import { distance_m } from '../../device/distance.ts';
import { readTextUpToSync, small_bytes_max } from '../../platform/bounded-file.ts';

/** Between two writes. */
export const write_every_ms = 60_000;
/** A kit that stands still renews the time of its fix this often. */
export const renew_every_ms = 900_000;
const moved_m = 25;

const savedFix = z.object({
  latitude,
  longitude,
  altitude: altitude_m.nullable(),
  /** UTC; null: the clock could not be trusted then. */
  time_ms: z.number().nullable(),
});
export type SavedFix = z.output<typeof savedFix>;

export class LastFix {
  readonly #file: string;
  readonly #onFault: (error: unknown) => void;
  #saved: SavedFix | undefined;
  #tried_ms = Number.NEGATIVE_INFINITY;
  #isFailing = false;

  /** `onFault` is called once when the file cannot be written, and again only after a write that succeeded. */
  constructor(file: string, onFault: (error: unknown) => void) {
    this.#file = file;
    this.#onFault = onFault;
  }

  /** What an earlier run kept; undefined when there is none or it is damaged. */
  read(): SavedFix | undefined {
    try {
      this.#saved = savedFix.safeParse(JSON.parse(readTextUpToSync(this.#file, small_bytes_max))).data;
    } catch {
      // Nothing was kept, or half of it: the next fix replaces it.
    }
    return this.#saved;
  }

  /** Writes it if it moved or the kept one grew old, at most once in `write_every_ms`. */
  keep(fix: SavedFix, mono_ms: number): void {
    const since_ms = mono_ms - this.#tried_ms;
    if (since_ms < write_every_ms) return;
    const isMoved = !this.#saved || distance_m(this.#saved, fix) >= moved_m;
    const isTimed = this.#saved?.time_ms === null && fix.time_ms !== null;
    if (!isMoved && !isTimed && since_ms < renew_every_ms) return;
    this.#tried_ms = mono_ms;
    try {
      writeDurably(this.#file, JSON.stringify(fix));
      this.#saved = fix;
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) this.#onFault(error);
      this.#isFailing = true;
    }
  }
}

function writeDurably(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const fresh = `${file}.new`;
  const descriptor = openSync(fresh, 'w', 0o600);
  try {
    writeSync(descriptor, text);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
  renameSync(fresh, file);
}
