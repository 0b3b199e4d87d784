/**
 * Opens and closes of devices that the kernel has not completed, by path. Each occupies one of the four threads that the
 * whole process has for files and names: another attempt at the same device waits for it instead of taking the next one.
 */
const unfinished = new Map<string, Promise<unknown>>();

/** Remembers work on the device until it settles. */
export function leaveUnfinished(path: string, work: Promise<unknown>): void {
  const settled: Promise<unknown> = Promise.allSettled([unfinished.get(path), work]).finally(() => {
    if (unfinished.get(path) === settled) unfinished.delete(path);
  });
  unfinished.set(path, settled);
}

/** Resolves when nothing is left of earlier work on the device; never rejects. */
export async function untilFinished(path: string): Promise<void> {
  await unfinished.get(path);
}
