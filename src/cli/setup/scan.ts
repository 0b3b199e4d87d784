/** Lets every driver that can look around do so for some seconds, all at once. */
import type { Suggest } from '../../driver/suggest.ts';
import { within } from '../../platform/time.ts';
import type { Found } from './text.ts';

export interface Scanner {
  readonly name: string;
  readonly suggest?: Suggest;
}

/** A driver that does not come back in time has found nothing. */
const grace_ms = 1_500;

/** Never rejects: what cannot be looked at has nothing to be found. */
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
    return found.map(({ what, options, complete }) => ({ driver: name, what, options, complete }));
  });
  return (await Promise.all(looks)).flat();
}
