/** Counts the copies of commands that a vehicle has not answered: its next answers may be to them, and not to a newer command. */
import { late_answer_max_ms } from '../links/outgoing.ts';

/** A later answer is not expected. */
const answer_max_ms = 4_000;
/** But it is possible, on a link that is congested, or over a satellite. */
const answer_possible_ms = { near: 10_000, far: late_answer_max_ms } as const;
const copies_max = 64;

export class UnansweredCopies {
  /** When a command was sent last. */
  last_ms = Number.NEGATIVE_INFINITY;
  #copies: { readonly command: number; readonly at_ms: number }[] = [];

  /** `now_ms` is monotonic. */
  sent(command: number, now_ms: number): void {
    this.last_ms = now_ms;
    this.#copies.push({ command, at_ms: now_ms });
    if (this.#copies.length > copies_max) this.#copies.shift();
  }

  /** Notes one answer, which is to the oldest copy: a vehicle executes commands in their order. */
  answered(command: number): void {
    const oldest = this.#copies.findIndex((each) => each.command === command);
    if (oldest >= 0) this.#copies.splice(oldest, 1);
  }

  /** Notes the copies that were sent over another link: they may be answered over this one. */
  adopt(others: UnansweredCopies): void {
    this.last_ms = Math.max(this.last_ms, others.last_ms);
    const all = [...new Set([...this.#copies, ...others.#copies])];
    this.#copies = all.toSorted((a, b) => a.at_ms - b.at_ms).slice(-copies_max);
  }

  /** Whether an answer may be to a copy of an earlier command, whose answer is late. */
  isAmbiguous(command: number, now_ms: number, { isFar }: { readonly isFar: boolean }): boolean {
    const possible_ms = isFar ? answer_possible_ms.far : answer_possible_ms.near;
    return this.#copies.some((each) => {
      const age_ms = now_ms - each.at_ms;
      return each.command === command && age_ms >= answer_max_ms && age_ms < possible_ms;
    });
  }

  /** Returns the number of copies of this command whose answer may still arrive. */
  count(command: number, now_ms: number): number {
    return this.#copies.filter((each) => each.command === command && now_ms - each.at_ms < answer_max_ms)
      .length;
  }
}
