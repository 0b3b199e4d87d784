/** Searches periodically for cameras that are not configured, if enabled. */
import type { onvifFeeds } from '../../src/contract/feeds.ts';
import type { DriverHost } from '../../src/driver/driver.ts';
import { sleep } from '../../src/platform/time.ts';
import { discover } from './discovery.ts';
import { type OnvifOptions, portOf } from './options.ts';
import { texts } from './texts.ts';

interface SurroundingsParts {
  readonly options: OnvifOptions;
  /** As configured now. */
  readonly cameras: () => OnvifOptions['cameras'];
  readonly host: DriverHost<typeof onvifFeeds>;
  readonly onFound: (found: { readonly count: number; readonly names: string }) => void;
}

const window_ms = 3_000;
const names_max = 16;

/** Runs until the signal aborts, or ends at once when disabled. */
export async function lookAround({ options, cameras, host, onFound }: SurroundingsParts): Promise<void> {
  const { interval_s, device } = options.discovery;
  if (interval_s === 0) return;
  let told = '';
  while (!host.signal.aborted) {
    const found = await discover({ signal: host.signal, window_ms, device });
    if (host.signal.aborted) return;
    const known = new Set(cameras().map((camera) => `${camera.host}:${portOf(camera)}`));
    const strangers = found.filter((each) => !known.has(`${each.host}:${each.port}`));
    const names = strangers
      .slice(0, names_max)
      .map((each) => `${each.host}:${each.port} (${each.model ?? each.name ?? 'unknown model'})`)
      .toSorted()
      .join(', ');
    if (names !== told) {
      told = names;
      onFound({ count: strangers.length, names });
      if (names !== '') host.log.info({ cameras: names }, texts.cameras_found);
    }
    await sleep(interval_s * 1_000, host.signal);
  }
}
