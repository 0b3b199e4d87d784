/**
 * The virtual world: one clock, one queue of events, and the processes that they belong to. One event at a time: what it
 * sets going in promises has come to rest before the next one, so a seed always gives the same story.
 */
import { real } from './globals.ts';
import type { Rng } from './rng.ts';

/** A computer with a clock of its own. */
export interface Machine {
  readonly name: string;
  /** Added to the true time of day. */
  wall_offset_ms: number;
}

/** One incarnation of a process: what it scheduled is dropped when it is dead. */
export interface Proc {
  readonly name: string;
  readonly machine: Machine;
  alive: boolean;
  /** Its event loop stands still until then. */
  frozen_until_ms: number;
}

export interface Handle {
  cancelled: boolean;
}

interface Event extends Handle {
  at_ms: number;
  /** Decides between processes at the same time; within one the order of scheduling counts. */
  readonly tie: number;
  readonly order: number;
  readonly proc: Proc;
  readonly run: () => void;
}

/** UTC at the beginning of every story. */
export const began_ms = Date.UTC(2026, 10, 21, 10);
/** A turn of the event loop takes at least so long. */
const turn_ms = 0.002;

export class World {
  now_ms = 0;
  events = 0;
  /** The process whose code runs now. */
  current: Proc | undefined;
  /** Told of what no code caught. */
  onCrash: (proc: Proc | undefined, error: unknown) => void = () => undefined;
  readonly program: Rng;
  readonly #ties: Rng;
  readonly #heap: Event[] = [];
  readonly #ranks = new Map<Proc, number>();
  #order = 0;

  constructor(rng: Rng) {
    this.program = rng.fork('program');
    this.#ties = rng.fork('ties');
  }

  spawn(name: string, machine: Machine): Proc {
    return { name, machine, alive: true, frozen_until_ms: 0 };
  }

  /** True time of day, and as the machine's clock says it. */
  wall(machine?: Machine): number {
    return began_ms + this.now_ms + (machine?.wall_offset_ms ?? 0);
  }

  /** Runs `run` in the process after `delay_ms`, unless the process is dead by then. */
  after(delay_ms: number, proc: Proc, run: () => void): Handle {
    this.#order += 1;
    let rank = this.#ranks.get(proc);
    if (rank === undefined) this.#ranks.set(proc, (rank = this.#ties.next()));
    const at_ms = this.now_ms + Math.max(turn_ms, delay_ms);
    const event: Event = { at_ms, tie: rank, order: this.#order, proc, run, cancelled: false };
    push(this.#heap, event);
    return event;
  }

  /** Runs `run` now in the process; what it sets going belongs to the process. */
  enter<T>(proc: Proc, run: () => T): T {
    const before = this.current;
    this.current = proc;
    try {
      return run();
    } finally {
      this.current = before;
    }
  }

  /** Lets events happen until the time is reached, or `isOver` says so after an event. */
  async run(until_ms: number, isOver: () => boolean = () => false): Promise<void> {
    for (;;) {
      const event = this.#heap[0];
      if (!event || event.at_ms > until_ms) break;
      pop(this.#heap);
      if (event.cancelled || !event.proc.alive) continue;
      if (event.proc.frozen_until_ms > event.at_ms) {
        event.at_ms = event.proc.frozen_until_ms;
        push(this.#heap, event);
        continue;
      }
      this.now_ms = Math.max(this.now_ms, event.at_ms);
      await this.#step(event);
      if (isOver()) return;
    }
    this.now_ms = Math.max(this.now_ms, until_ms);
  }

  /** Lets what was set going outside an event come to rest. */
  async settle(proc: Proc): Promise<void> {
    this.current = proc;
    await real.turn();
    this.current = undefined;
  }

  async #step({ proc, run }: Event): Promise<void> {
    this.events += 1;
    this.current = proc;
    try {
      run();
    } catch (error) {
      this.onCrash(proc, error);
    }
    await real.turn();
    this.current = undefined;
  }
}

function isBefore(a: Event, b: Event): boolean {
  if (a.at_ms !== b.at_ms) return a.at_ms < b.at_ms;
  return a.proc === b.proc || a.tie === b.tie ? a.order < b.order : a.tie < b.tie;
}

function push(heap: Event[], event: Event): void {
  let at = heap.length;
  heap.push(event);
  while (at > 0) {
    const up = (at - 1) >> 1;
    const parent = heap[up];
    if (!parent || !isBefore(event, parent)) break;
    heap[at] = parent;
    at = up;
  }
  heap[at] = event;
}

function pop(heap: Event[]): void {
  const last = heap.pop();
  if (!last || heap.length === 0) return;
  let at = 0;
  for (;;) {
    const left = 2 * at + 1;
    const [a, b] = [heap[left], heap[left + 1]];
    const child = a && b && isBefore(b, a) ? b : a;
    if (!child || !isBefore(child, last)) break;
    heap[at] = child;
    at = child === a ? left : left + 1;
  }
  heap[at] = last;
}
