/** Waiting and deadlines on the global timers, so that tests can fake them and every wait ends with its signal. */

export const day_ms = 86_400_000;

/** Gateways without a battery-backed clock boot in the past: no time before this release can be right. */
export const earliest_plausible_ms = Date.UTC(2026, 10, 1);

/** The day in UTC, as `2026-11-25`. */
export function utcDay(time: string | number): string {
  return new Date(time).toISOString().slice(0, 10);
}

/** Resolves after `ms`, or at once when `signal` aborts. */
export async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const finish = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', finish);
      resolve();
    };
    const timer = setTimeout(finish, ms);
    signal.addEventListener('abort', finish, { once: true });
  });
}

export async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** Calls `tick` every `ms` until `signal` aborts. The timer does not keep the process alive. */
export function every(ms: number, signal: AbortSignal, tick: () => void): void {
  if (signal.aborted) return;
  const timer = setInterval(tick, ms);
  timer.unref();
  signal.addEventListener('abort', () => clearInterval(timer), { once: true });
}

/** The same for work that takes time: a tick is skipped while the work of an earlier one is running. The work does not reject. */
export function everyInTurn(ms: number, signal: AbortSignal, work: () => Promise<void>): void {
  let isRunning = false;
  const run = async (): Promise<void> => {
    if (isRunning) return;
    isRunning = true;
    await work();
    isRunning = false;
  };
  every(ms, signal, () => void run());
}

/** A timer that runs later than this after its time shows a stall of this process. */
const late_max_ms = 50;
const late_grace_max_ms = 1_000;

/**
 * Calls `expire` after `ms`; after a stall of this process later by as much, within limits: timers come before sockets,
 * and what arrived meanwhile must be read first. Returns what cancels it.
 */
export function deadline(ms: number, expire: () => void): () => void {
  const due_ms = performance.now() + ms;
  let timer = setTimeout(() => {
    const late_ms = performance.now() - due_ms;
    if (late_ms < late_max_ms) expire();
    else timer = setTimeout(expire, Math.min(late_ms, ms, late_grace_max_ms));
  }, ms);
  return () => clearTimeout(timer);
}

/**
 * Gives `work` at most `ms`, by a `deadline`: resolves with its value, or with `undefined` when the time is over or
 * `signal` aborts.
 * The work itself is not stopped; its late failure is swallowed, since its result is no longer awaited.
 */
export async function within<T>(ms: number, work: Promise<T>, signal?: AbortSignal): Promise<T | undefined> {
  const over = new AbortController();
  const limits = signal ? AbortSignal.any([over.signal, signal]) : over.signal;
  const cancel = deadline(ms, () => over.abort());
  work.catch(() => undefined);
  try {
    return await Promise.race([work, aborted(limits).then(() => undefined)]);
  } finally {
    cancel();
    over.abort();
  }
}

/** Resolves after the pending work of the event loop has run: to be awaited between the portions of long work. */
export async function turn(): Promise<void> {
  await new Promise<void>((resolve) => {
    setImmediate(resolve);
  });
}

/** Returns what is awaited for each of many things, or with their number: a `turn` after each `count` of them, else nothing. */
export function turnEvery(count: number): (things?: number) => Promise<void> {
  let left = count;
  return async (things = 1) => {
    left -= things;
    if (left > 0) return;
    left = count;
    await turn();
  };
}

/**
 * Yields the pause before each retry, spread at random over a span that doubles from `first_ms` up to `max_ms`: between `min_ms`, left
 * out half of the span, and all of it.
 */
export function* backoff(
  first_ms: number,
  max_ms: number,
  random = Math.random,
  min_ms?: number,
): Generator<number, never> {
  for (let span_ms = first_ms; ; span_ms = Math.min(span_ms * 2, max_ms)) {
    const least_ms = min_ms ?? span_ms / 2;
    yield least_ms + random() * Math.max(0, span_ms - least_ms);
  }
}
