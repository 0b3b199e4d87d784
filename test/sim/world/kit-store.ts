/** The buffer's thread in the simulator: the real store, asked over a port that takes its time and can hang. */
import {
  InvariantBroken,
  messageOf,
  StorageUnavailable,
  StorageUnsure,
} from '../../../src/platform/errors.ts';
import type { Done, Work } from '../../../src/kit/outbox/protocol.ts';
import { openStore, type Store } from '../../../src/kit/outbox/store/store.ts';
import type { StartStore, StoreClient } from '../../../src/kit/outbox/live/store-client.ts';
import type { Rng } from './rng.ts';
import type { Proc, World } from './scheduler.ts';

/** What faults may set. */
export interface PortState {
  /** Nothing is answered before. */
  hangs_until_ms: number;
  /** Added to each request. */
  slow_ms: number;
}

interface PortParts {
  readonly world: World;
  readonly rng: Rng;
  readonly proc: Proc;
  readonly state: PortState;
  /** A commit was executed; its answer is still on its way. */
  readonly onCommit: (work: Work, done: Done) => void;
  /** An acknowledgement of the cloud was executed. */
  readonly onAck: () => void;
  /** What is being done now may be torn by a power cut. */
  readonly onAnswer: () => void;
}

interface Call {
  readonly run: () => void;
  readonly answer: () => void;
}

const crossing_ms = 0.05;
const quick_ms = 0.15;
const slow_ms = 4;
/** Small, so that rows beyond it are common. */
const unconfirmed_max = 64;

export function simulatedStore(parts: PortParts): StartStore {
  return async (options) => {
    const port = new Port(parts);
    const { store, opened } = await port.ask(() => openStore({ ...options, unconfirmed_max }));
    return { opened, client: clientOf(port, store) };
  };
}

/** One request at a time, in order, as the thread does. */
class Port {
  readonly parts: PortParts;
  readonly #calls: Call[] = [];
  #isBusy = false;

  constructor(parts: PortParts) {
    this.parts = parts;
  }

  async ask<T>(work: () => T): Promise<T> {
    const { world, proc } = this.parts;
    return new Promise((resolve, reject) => {
      let answer = (): void => undefined;
      const run = (): void => {
        try {
          const value = work();
          answer = () => resolve(value);
        } catch (error) {
          const failed = failureOf(error);
          answer = () => reject(failed);
        }
      };
      world.after(crossing_ms, proc, () => {
        this.#calls.push({ run, answer: () => answer() });
        this.#next();
      });
    });
  }

  #next(): void {
    const { world, proc, rng, state } = this.parts;
    const call = this.#isBusy ? undefined : this.#calls.shift();
    if (!call) return;
    this.#isBusy = true;
    const hangs_ms = Math.max(0, state.hangs_until_ms - world.now_ms);
    const takes_ms = hangs_ms + state.slow_ms + rng.scale(quick_ms, slow_ms);
    // A disk that hangs may have what it was given, or not yet.
    const is_done_first = rng.chance(0.5);
    if (is_done_first) call.run();
    world.after(takes_ms, proc, () => {
      if (!is_done_first) call.run();
      world.after(crossing_ms, proc, () => {
        this.parts.onAnswer();
        call.answer();
      });
      this.#isBusy = false;
      this.#next();
    });
  }
}

/** Whatever a store can be asked is asked over the port. */
function clientOf(port: Port, store: Store): StoreClient {
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  const methods = new Proxy(store, {
    get: (target, name) => {
      const method: unknown = Reflect.get(target, name);
      if (typeof method !== 'function') return undefined;
      return async (...args: readonly unknown[]) =>
        port.ask(() => {
          const value: unknown = Reflect.apply(method, target, args);
          if (name === 'commit') port.parts.onCommit(workOf(args), doneOf(value));
          if (name === 'confirm') port.parts.onAck();
          if (name === 'close') resolve();
          return value;
        });
    },
  });
  return asClient(methods, closed);
}

function workOf([work]: readonly unknown[]): Work {
  if (!isWork(work)) throw new InvariantBroken('a commit without work');
  return work;
}

function doneOf(value: unknown): Done {
  if (!isDone(value)) throw new InvariantBroken('a commit without an answer');
  return value;
}

function isDone(value: unknown): value is Done {
  return typeof value === 'object' && value !== null && 'depth' in value && 'quarantined_rows' in value;
}

function isWork(value: unknown): value is Work {
  return typeof value === 'object' && value !== null && 'rows' in value;
}

/** The proxy answers promises where the store answers values. */
function asClient(methods: Store, closed: Promise<void>): StoreClient {
  const client: unknown = new Proxy(methods, {
    get: (target, name): unknown => (name === 'closed' ? closed : Reflect.get(target, name)),
  });
  if (!isClient(client)) throw new InvariantBroken('no client');
  return client;
}

function isClient(value: unknown): value is StoreClient {
  return typeof value === 'object' && value !== null && 'commit' in value;
}

/** An error class does not survive the crossing. */
function failureOf(error: unknown): Error {
  if (error instanceof StorageUnsure) return new StorageUnsure(messageOf(error));
  return error instanceof StorageUnavailable
    ? new StorageUnavailable(messageOf(error))
    : new InvariantBroken(messageOf(error));
}
