/** Waits, until the signal aborts at most. */
export async function rest(ms: number, signal: AbortSignal) {
  if (signal.aborted || ms <= 0) return;
  const { promise, resolve }: PromiseWithResolvers<void> = Promise.withResolvers();
  const timer = setTimeout(resolve, ms);
  signal.addEventListener('abort', () => resolve(), { once: true });
  await promise;
  clearTimeout(timer);
}
