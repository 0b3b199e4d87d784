/** Persistent state of one device or asset, in small files that only the daemon may read. */
import { createHash } from 'node:crypto';
import { rm } from 'node:fs/promises';
import type { z } from 'zod';
import { replaceFile } from '../../platform/replace-file.ts';
import { readTextUpTo } from '../../platform/bounded-file.ts';

/** What the connector writes is far smaller; a larger file is damaged. */
const state_bytes_max = 262_144;

/** Returns the name of a state file for a key that may hold characters not allowed in file names. */
export function stateFileName(kind: string, key: string): string {
  return `${kind}-${createHash('sha256').update(key).digest('hex').slice(0, 24)}.json`;
}

/** The text of a state file; undefined when there is none, or none that can be read. */
export async function readStateText(path: string): Promise<string | undefined> {
  return readTextUpTo(path, state_bytes_max).catch(() => undefined);
}

/** A file of one JSON value. Writes are serialized and atomic. */
export class StateFile<S extends z.ZodType> {
  readonly #path: string;
  readonly #schema: S;
  #writing: Promise<void> = Promise.resolve();

  constructor(path: string, schema: S) {
    this.#path = path;
    this.#schema = schema;
  }

  /** Undefined when there is none, or none that can be read. */
  async read(): Promise<z.output<S> | undefined> {
    const text = await readStateText(this.#path);
    if (text === undefined) return undefined;
    try {
      return this.#schema.safeParse(JSON.parse(text)).data;
    } catch {
      return undefined;
    }
  }

  /** Resolves when the value is on the disk; rejects when it cannot be. */
  async write(value: z.output<S>): Promise<void> {
    return this.#next(async () => replaceFile(this.#path, JSON.stringify(value)));
  }

  async remove(): Promise<void> {
    return this.#next(async () => rm(this.#path, { force: true }));
  }

  async #next(act: () => Promise<void>): Promise<void> {
    const done = this.#writing.then(act);
    this.#writing = done.catch(() => undefined);
    return done;
  }
}
