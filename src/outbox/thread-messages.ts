/** What crosses between `StoreClient` and the thread: first the `StoreOptions`, then requests. */
import type { StoreRequests } from './protocol.ts';

export interface Request {
  /** From 1; replies come in the same order. */
  readonly id: number;
  readonly method: keyof StoreRequests;
  readonly args: readonly unknown[];
}

/** An error class does not survive the crossing, so it goes as data. */
export interface Failure {
  readonly unavailable: boolean;
  readonly message: string;
}

/** The thread's side of an answer. Number 0 comes unasked and says how opening went. */
export type Reply =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly failure: Failure };

/** The same as it arrives: only the one who asked knows what `value` is. */
export type Answer =
  | { readonly id: number; readonly value: never }
  | { readonly id: number; readonly failure: Failure };
