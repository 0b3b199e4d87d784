/**
 * What a stop could not write because the disk refused or did not answer: noted in the runtime directory, so that the next
 * start names it on `drops`. That directory is memory: it can be written while the disk cannot, and lasts until the next boot.
 */
import { appendFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Drop } from './protocol.ts';

import { unlessRefused } from './disk-fault.ts';
import { epochNumber, rowShapes } from './row-shapes.ts';
import { readTextUpToSync } from '../../platform/bounded-file.ts';

/** A note for each stop. Its numbers fill less than 1 MiB, as memory holds so many messages; further notes are refused. */
const file_bytes_max = 4 * 1024 * 1024;

export interface Unwritten {
  /** The last epoch of the run that stopped. */
  readonly epoch: number;
  readonly kit_id: string | undefined;
  /** Messages, as runs of numbers without holes. A commit that was under way may have stored them after all. */
  readonly rows: readonly Drop[];
  /** Drops that were not recorded on disk. */
  readonly drops: readonly Drop[];
  /** Messages in the file of that run, which was out of reach: they are lost if another file is there now. */
  readonly stored: readonly Drop[];
}

/** Adds a note. False when it could not be written. */
export function noteUnwritten(runtime_dir: string | undefined, note: Unwritten): boolean {
  if (runtime_dir === undefined) return false;
  const { epoch, kit_id, rows, drops, stored } = note;
  const text = JSON.stringify({
    epoch,
    kit_id,
    rows: rows.map(tupleOf),
    drops: drops.map(tupleOf),
    stored: stored.map(tupleOf),
  });
  return unlessRefused(() => {
    const file = fileIn(runtime_dir);
    if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) >= file_bytes_max) return false;
    appendFileSync(file, `${text}\n`, { mode: 0o600 });
    return true;
  }, false);
}

/** The notes of earlier runs, oldest first; a line that was cut off is left out. */
export function readUnwritten(runtime_dir: string | undefined): readonly Unwritten[] {
  if (runtime_dir === undefined) return [];
  const text = unlessRefused(() => readTextUpToSync(fileIn(runtime_dir), 2 * file_bytes_max), '');
  return text.split('\n').flatMap((line) => noteOf(line) ?? []);
}

/** To be called once the notes are in the buffer file. A note that remains is recognised by its epoch. */
export function forgetUnwritten(runtime_dir: string | undefined): void {
  if (runtime_dir === undefined) return;
  unlessRefused(() => rmSync(fileIn(runtime_dir), { force: true }), undefined);
}

function fileIn(runtime_dir: string): string {
  return join(runtime_dir, 'unwritten');
}

function tupleOf({ epoch, lane, reason, rows, lo, hi }: Drop): readonly unknown[] {
  return [epoch, lane, reason, rows, lo, hi];
}

function noteOf(line: string): Unwritten | undefined {
  const value = parsed(line);
  if (typeof value !== 'object' || value === null) return undefined;
  const none = { epoch: 0, kit_id: undefined, rows: [], drops: [], stored: [] };
  const { epoch, kit_id, rows, drops, stored } = { ...none, ...value };
  if (!epochNumber(epoch) || (kit_id !== undefined && typeof kit_id !== 'string')) return undefined;
  return { epoch, kit_id, rows: dropsOf(rows), drops: dropsOf(drops), stored: dropsOf(stored) };
}

function dropsOf(tuples: unknown): readonly Drop[] {
  if (!Array.isArray(tuples)) return [];
  return tuples.flatMap((each: unknown) => (Array.isArray(each) && rowShapes.drops.of(each)) || []);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
