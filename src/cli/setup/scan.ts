/** Scans for devices with every driver that supports it, concurrently, for a limited time. */
import type { Suggest } from '../../driver/suggest.ts';
import { cleanText } from '../../platform/foreign-text.ts';
import { within } from '../../platform/time.ts';
import type { Found } from './text.ts';

export interface Scanner {
  readonly name: string;
  readonly suggest?: Suggest;
}

/** A driver that exceeds the limit by this time has found no device. */
const grace_ms = 1_500;

/** Never rejects: a failed scan of a driver finds no device. */
export async function scan(
  drivers: readonly Scanner[],
  ms: number,
  signal: AbortSignal,
): Promise<readonly Found[]> {
  const over = AbortSignal.any([signal, AbortSignal.timeout(ms)]);
  const looks = drivers.map(async ({ name, suggest }): Promise<readonly Found[]> => {
    if (!suggest) return [];
    const suggested = suggest(over).catch(() => []);
    const found = (await within(ms + grace_ms, suggested, signal)) ?? [];
    return found.map(({ what, options, complete }) => ({
      driver: name,
      what: cleanText(what),
      options,
      complete,
    }));
  });
  return (await Promise.all(looks)).flat();
}
