/** Fake timers for every test of a file; a test that leaves a timer behind fails. */
import { beforeEach, onTestFinished, vi } from 'vitest';

export function useFakeTime(): void {
  beforeEach(() => {
    vi.useFakeTimers();
    // After all that a test has registered for its own end.
    onTestFinished(() => {
      const left = vi.getTimerCount();
      vi.useRealTimers();
      if (left > 0) throw new Error(`${left} timers were left behind`);
    });
  });
}
