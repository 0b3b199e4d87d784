/** Requests about the history read much: a key has two at once, and an export counts as one. */
import type { Principal } from '../../access/principal.ts';
import { RequestProblem } from '../../api/problem.ts';
import { texts } from '../../texts.ts';

const at_once_max = 2;
const retry_s = 2;

export class HistoryGate {
  readonly #running = new Map<string, number>();

  /** Runs the request. Rejects with `too-many-requests` while the key has two others. */
  async run<T>(principal: Principal, request: () => Promise<T>): Promise<T> {
    const leave = this.enter(principal);
    try {
      return await request();
    } finally {
      leave();
    }
  }

  /** Takes a place, and returns what gives it back. */
  enter({ key_id }: Principal): () => void {
    const running = this.#running.get(key_id) ?? 0;
    if (running >= at_once_max) {
      throw new RequestProblem('too-many-requests', texts.history_busy(at_once_max), {
        retry_after_s: retry_s,
      });
    }
    this.#running.set(key_id, running + 1);
    let isLeft = false;
    return () => {
      const left = (this.#running.get(key_id) ?? 1) - 1;
      if (isLeft) return;
      isLeft = true;
      if (left > 0) this.#running.set(key_id, left);
      else this.#running.delete(key_id);
    };
  }
}
