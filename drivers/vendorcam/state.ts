/** What must outlive a restart for one host or asset, in small files that only the daemon may read. */
import { readFile, rm } from 'node:fs/promises';
import type { z } from 'zod';
import { replaceFile } from '../../src/platform/replace-file.ts';

/** A file of one JSON value. Writes follow one another; each is whole or not there. */
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
    const text = await readFile(this.#path, 'utf8').catch(() => undefined);
    if (text === undefined) return undefined;
    try {
      return this.#schema.safeParse(JSON.parse(text)).data;
    } catch {
      return undefined;
    }
  }

  /** Resolves when the value is on the disk; rejects when it cannot be. */
  async write(value: z.input<S>): Promise<void> {
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
