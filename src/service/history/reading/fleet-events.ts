/** The newest, or oldest, events of several kits, read one kit after the other: two pages are in memory at most. */
import type { HistoryMessage } from '../message.ts';
import type { Page } from './page.ts';
import { page_chars_max } from './reader.ts';

export interface FleetMessage {
  readonly kit_id: string;
  readonly message: HistoryMessage;
}

export class FleetEvents {
  readonly #sign: number;
  readonly #limit: number;
  #kept: readonly FleetMessage[] = [];
  /** Behind it, some kit may have events that were not read or not kept: none are given there. */
  #end_ms: number | undefined;

  constructor({ order, limit }: { readonly order: 'asc' | 'desc'; readonly limit: number }) {
    this.#sign = order === 'asc' ? 1 : -1;
    this.#limit = limit;
  }

  /** In order: `limit` at most, fewer when their data is large; the rest follows from the time of the last one. */
  get events(): readonly FleetMessage[] {
    return this.#kept;
  }

  /** Takes the first page of a kit. Returns false when so much was read before the first event that nothing can be said. */
  add(kit_id: string, { messages, next }: Page): boolean {
    if (next !== null && messages.length < this.#limit) {
      const last = messages.at(-1);
      if (!last) return false;
      this.#endAt(last.time_ms);
    }
    const all = [...this.#kept, ...messages.map((message) => ({ kit_id, message }))];
    const first = all
      .filter((each) => this.#end_ms === undefined || this.#sign * (timeOf(each) - this.#end_ms) <= 0)
      .sort((a, b) => this.#sign * (timeOf(a) - timeOf(b)))
      .slice(0, this.#limit);
    let chars = 0;
    const excess = first.findIndex(({ message }) => (chars += message.data.length) > page_chars_max);
    this.#kept = excess > 0 ? first.slice(0, excess) : first;
    const last = this.#kept.at(-1);
    if (excess > 0 && last) this.#endAt(timeOf(last));
    return true;
  }

  #endAt(time_ms: number): void {
    const pick = this.#sign > 0 ? Math.min : Math.max;
    this.#end_ms = pick(this.#end_ms ?? time_ms, time_ms);
  }
}

function timeOf({ message }: FleetMessage): number {
  return message.time_ms;
}
