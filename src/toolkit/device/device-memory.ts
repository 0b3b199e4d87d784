/** State of one device that is kept over restarts: its certificate, its session and the like. */
import type { z } from 'zod';
import type { DriverLog } from '../driver/driver.ts';
import { messageOf } from '../../platform/errors.ts';
import { StateFile } from './state-file.ts';
import { texts } from './texts.ts';

/** Properties of the value that change; `undefined` removes one. */
export type MemoryChange<T> = { readonly [K in keyof T]?: T[K] | undefined };

/** As the parts of the toolkit and of a driver see the memory of a device: what each keeps there. */
export interface MemoryOf<T> {
  readonly facts: T;
  /** Resolves also when the disk write fails. */
  readonly change: (change: MemoryChange<T>) => Promise<void>;
}

/** One JSON object in a state file. An empty object must satisfy its schema: it is the initial value. */
export class DeviceMemory<S extends z.ZodType<object>> {
  readonly #file: StateFile<S>;
  readonly #schema: S;
  readonly #log: DriverLog;
  #facts: z.output<S>;
  #isFailing = false;

  private constructor(file: StateFile<S>, schema: S, { facts, log }: { facts: z.output<S>; log: DriverLog }) {
    this.#file = file;
    this.#schema = schema;
    this.#facts = facts;
    this.#log = log;
  }

  static async open<S extends z.ZodType<object>>(
    path: string,
    schema: S,
    log: DriverLog,
  ): Promise<DeviceMemory<S>> {
    const file = new StateFile(path, schema);
    const facts = (await file.read()) ?? schema.parse({});
    return new DeviceMemory(file, schema, { facts, log });
  }

  get facts(): z.output<S> {
    return this.#facts;
  }

  /** Resolves also when the disk write fails: the change is then lost at the next start. */
  async change(change: MemoryChange<z.output<S>>): Promise<void> {
    this.#facts = this.#schema.parse({ ...this.#facts, ...change });
    try {
      await this.#file.write(this.#facts);
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) {
        this.#log.warn({ reason: messageOf(error) }, texts.state_not_saved);
      }
      this.#isFailing = true;
    }
  }
}
