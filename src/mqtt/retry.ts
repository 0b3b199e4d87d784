/** The pauses between attempts to connect. */

/** No attempt follows another one sooner. */
const pause_min_ms = 200;

export interface RetrySpans {
  readonly first_ms: number;
  readonly max_ms: number;
}

/**
 * Yields the pause before each attempt, spread over the whole of a span that doubles from `first_ms` up to `max_ms`: the
 * thousands of kits that lose one broker at the same moment do not reconnect in the same second.
 */
export function* retryPauses(
  { first_ms, max_ms }: RetrySpans,
  random: () => number,
): Generator<number, never> {
  for (let span_ms = first_ms; ; span_ms = Math.min(span_ms * 2, max_ms))
    yield pause_min_ms + random() * Math.max(0, span_ms - pause_min_ms);
}
