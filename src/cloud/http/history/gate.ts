/**
 * Requests about the history read much: a key has two at once, an export counts as one, and a few more wait for their turn. What is read
 * at the same time is limited over all keys besides, since each of them holds a part of the history in memory.
 */
import { type InTurn, KeyedSemaphore, type Leave, Semaphore } from '../../../platform/semaphore.ts';
import type { Principal } from '../../principal.ts';
import { RequestProblem } from '../../api/problem.ts';
import { texts } from '../../texts.ts';

const at_once_max = 2;
/** A dashboard asks for all of its panels at the same time. */
const waiting_max = 32;
const wait_max_ms = 10_000;
const retry_s = 2;
/** Of all keys: requests that read at the same time. */
const reads_at_once_max = 4;
/** Of all keys: each holds what its client has not taken yet. */
export const exports_max = 24;
const export_retry_s = 30;
/** Pages of exports that are read at the same time: other requests have their own places. */
const pages_at_once_max = 2;
/** Exports are limited already: at most `exports_max` wait for a page. */
const page_wait_max_ms = 300_000;

/** The place of an export. */
export interface ExportPlace {
  /** Reads a page when it is its turn. */
  readonly read: InTurn;
  readonly leave: () => void;
}

export class HistoryGate {
  readonly #byKey = new KeyedSemaphore(at_once_max, { wait_max_ms, waiting_max, refusal: tooMany });
  readonly #reads = new Semaphore(reads_at_once_max, {
    wait_max_ms,
    refusal: () => new RequestProblem('unavailable', texts.history_crowded, { retry_after_s: retry_s }),
  });
  readonly #pages = new Semaphore(pages_at_once_max, {
    wait_max_ms: page_wait_max_ms,
    refusal: () => new Error(texts.history_crowded),
  });
  readonly #exports = new Semaphore(exports_max);

  /**
   * Runs the request when it is its turn. Rejects with `too-many-requests` as `enter` does, and with `unavailable` when those of other
   * keys take too long.
   */
  async run<T>(principal: Principal, request: () => Promise<T>): Promise<T> {
    return this.runParts(principal, async (inTurn) => inTurn(request));
  }

  /** The same for a request of many parts, each of which waits for its turn: those of other keys do not wait for all of them. */
  async runParts<T>(principal: Principal, request: (inTurn: InTurn) => Promise<T>): Promise<T> {
    const leave = await this.enter(principal);
    try {
      return await request(async (part) => this.#reads.run(part));
    } finally {
      leave();
    }
  }

  /** Waits for the place of an export. Rejects as `enter` does, and with `unavailable` when all keys together have too many. */
  async enterExport(principal: Principal): Promise<ExportPlace> {
    const leaveKey = await this.enter(principal);
    const leaveAll = this.#exports.tryTake();
    if (!leaveAll) {
      leaveKey();
      throw tooManyExports();
    }
    return {
      read: async (page) => this.#pages.run(page),
      leave() {
        leaveAll();
        leaveKey();
      },
    };
  }

  /**
   * Waits for a place, and returns what gives it back. Rejects with `too-many-requests` when too many others of the key wait, or when
   * none has ended for long.
   */
  async enter({ key_id }: Principal): Promise<Leave> {
    return this.#byKey.take(key_id);
  }
}

function tooManyExports(): RequestProblem {
  return new RequestProblem('unavailable', texts.exports_busy(exports_max), {
    retry_after_s: export_retry_s,
  });
}

function tooMany(): RequestProblem {
  return new RequestProblem('too-many-requests', texts.history_busy(at_once_max), {
    retry_after_s: retry_s,
  });
}
