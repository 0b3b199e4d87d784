/** When a delivery is tried again. */

const minute_ms = 60_000;
const hour_ms = 60 * minute_ms;

export interface Pauses {
  /** After the first attempt of a message, and each one after it; after the last one it is given up. */
  readonly message_ms: readonly number[];
  /** Between two attempts at a receiver that fails, whatever the message: doubles from the first to the last. */
  readonly receiver_ms: { readonly first: number; readonly max: number };
  /** Least time between two searches for messages that are due, while any wait. */
  readonly look_ms: number;
}

/** The schedule that Standard Webhooks recommends, about three days. */
export const usual_pauses: Pauses = {
  message_ms: [
    5_000,
    5 * minute_ms,
    30 * minute_ms,
    2 * hour_ms,
    5 * hour_ms,
    10 * hour_ms,
    14 * hour_ms,
    20 * hour_ms,
    24 * hour_ms,
  ],
  receiver_ms: { first: 5_000, max: 5 * minute_ms },
  look_ms: 1_000,
};
/** A receiver that asks for more time (`Retry-After`) gets so much at most. */
const asked_max_ms = hour_ms;
/** Part of a pause that chance adds: receivers that were down are not reached by all deliveries at once. */
const jitter = 0.2;
/** The pause after attempt `attempts` of a message, which begin at 1; undefined: it was the last one. `random` in [0, 1). */
export function messagePause(
  attempts: number,
  { random, asked_ms = 0, pauses = usual_pauses }: PauseParts,
): number | undefined {
  const pause_ms = pauses.message_ms[attempts - 1];
  return pause_ms === undefined
    ? undefined
    : withJitter(Math.max(pause_ms, Math.min(asked_ms, asked_max_ms)), random);
}

interface PauseParts {
  readonly random: () => number;
  /** `Retry-After`. */
  readonly asked_ms?: number | undefined;
  /** Left out: the usual ones. */
  readonly pauses?: Pauses | undefined;
}

/** The pause of a receiver after so many failures in a row. */
export function receiverPause(
  failures: number,
  { random, asked_ms = 0, pauses = usual_pauses }: PauseParts,
): number {
  const { first, max } = pauses.receiver_ms;
  const grown_ms = Math.min(first * 2 ** Math.max(0, failures - 1), max);
  return withJitter(Math.max(grown_ms, Math.min(asked_ms, asked_max_ms)), random);
}

function withJitter(pause_ms: number, random: () => number): number {
  return Math.round(pause_ms * (1 + jitter * random()));
}
