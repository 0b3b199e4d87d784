/** Requests about the history read much: a key has two at once, an export counts as one, and a few more wait for their turn. */
import type { Principal } from '../../access/principal.ts';
import { RequestProblem } from '../../api/problem.ts';
import { texts } from '../../texts.ts';

const at_once_max = 2;
/** A dashboard asks for all of its panels at the same time. */
const waiting_max = 32;
const wait_max_ms = 10_000;
const retry_s = 2;

interface Places {
  running: number;
  /** Each gives a place to the request that has waited longest. */
  readonly waiting: Set<() => void>;
}

export class HistoryGate {
  readonly #byKey = new Map<string, Places>();

  /** Runs the request when it is its turn. Rejects with `too-many-requests` as `enter` does. */
  async run<T>(principal: Principal, request: () => Promise<T>): Promise<T> {
    const leave = await this.enter(principal);
    try {
      return await request();
    } finally {
      leave();
    }
  }

  /**
   * Waits for a place, and returns what gives it back. Rejects with `too-many-requests` when too many others of the key wait, or when
   * none has ended for long.
   */
  async enter({ key_id }: Principal): Promise<() => void> {
    const places = this.#byKey.get(key_id) ?? { running: 0, waiting: new Set() };
    this.#byKey.set(key_id, places);
    if (places.running < at_once_max) places.running += 1;
    else await waitIn(places);
    let isLeft = false;
    return () => {
      if (isLeft) return;
      isLeft = true;
      const [next] = places.waiting;
      // The place goes to the next one without becoming free.
      if (next) next();
      else places.running -= 1;
      if (places.running === 0) this.#byKey.delete(key_id);
    };
  }
}

async function waitIn({ waiting }: Places): Promise<void> {
  if (waiting.size >= waiting_max) throw tooMany();
  await new Promise<void>((resolve, reject) => {
    const take = (): void => {
      clearTimeout(timer);
      waiting.delete(take);
      // What a database in the same process answers takes no turn of the event loop: all that wait would run in one.
      setImmediate(resolve);
    };
    const timer = setTimeout(() => {
      waiting.delete(take);
      reject(tooMany());
    }, wait_max_ms);
    waiting.add(take);
  });
}

function tooMany(): RequestProblem {
  return new RequestProblem('too-many-requests', texts.history_busy(at_once_max), {
    retry_after_s: retry_s,
  });
}
