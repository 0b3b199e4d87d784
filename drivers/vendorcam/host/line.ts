/** Sends one request at a time to a host; a Stop precedes all others and does not wait long for a poll. */
import { DeviceUnreachable } from '../../../src/platform/errors.ts';
import { sleep } from '../../../src/platform/time.ts';
import { GivenUp } from './rsp-codes.ts';
import type { Limits } from '../limits.ts';
import { texts } from '../texts.ts';

/** `read` may be cancelled for an urgent request; `write` never is. */
export type Urgency = 'read' | 'write' | 'urgent';

interface Turn {
  readonly urgency: Urgency;
  readonly giveUp: AbortController;
}

interface Waiting {
  readonly turn: Turn;
  readonly begin: () => void;
}

export class Line {
  readonly #limits: Pick<Limits, 'waiting_max' | 'urgent_wait_ms'>;
  readonly #stopping: AbortSignal;
  readonly #waiting: Waiting[] = [];
  #under_way: Turn | undefined;

  /** `stopping`: the driver ends; answers to polls are no longer needed. */
  constructor(limits: Pick<Limits, 'waiting_max' | 'urgent_wait_ms'>, stopping: AbortSignal) {
    this.#limits = limits;
    this.#stopping = stopping;
  }

  /** Runs `work` in its turn. Its signal aborts when an urgent request needs the line. */
  async take<T>(urgency: Urgency, work: (giveUp: AbortSignal) => Promise<T>): Promise<T> {
    const { giveUp } = await this.#turn(urgency);
    try {
      return await work(giveUp.signal);
    } finally {
      // The next request is reserved now, so that no other one can start before it.
      const next = this.#waiting.shift();
      this.#under_way = next?.turn;
      giveUp.abort();
      next?.begin();
    }
  }

  async #turn(urgency: Urgency): Promise<Turn> {
    const turn: Turn = { urgency, giveUp: new AbortController() };
    if (!this.#under_way) {
      this.#under_way = turn;
      return turn;
    }
    if (urgency !== 'urgent' && this.#waiting.length >= this.#limits.waiting_max) {
      throw new DeviceUnreachable(texts.queue_full);
    }
    const begun = Promise.withResolvers<void>();
    const waiting = { turn, begin: begun.resolve };
    if (urgency === 'urgent') {
      const before = this.#waiting.filter((each) => each.turn.urgency === 'urgent').length;
      this.#waiting.splice(before, 0, waiting);
      void this.#hurry();
    } else {
      this.#waiting.push(waiting);
    }
    await begun.promise;
    return turn;
  }

  async #hurry(): Promise<void> {
    const current = this.#under_way;
    if (current?.urgency !== 'read') return;
    await sleep(this.#limits.urgent_wait_ms, AbortSignal.any([current.giveUp.signal, this.#stopping]));
    current.giveUp.abort(new GivenUp(texts.gave_way));
  }
}
