/** Keeps one radio served: connects, polls, and tries again later when it is lost, without a word to the other radios. */
import { CommandRefused, DeviceRejected, messageOf } from '../../src/errors.ts';
import { aborted, backoff, sleep, within } from '../../src/platform/time.ts';
import { TryLater } from './failure.ts';
import { Memory, fileNameOf } from './memory.ts';
import { portOf } from './options.ts';
import { RadioAsset, type RadioAssetParts } from './radio-asset.ts';
import type { Reading } from './reading.ts';
import { openSource } from './open-source.ts';
import type { KeeperHooks, RadioSource } from './source.ts';

export interface KeeperParts extends RadioAssetParts {
  /** Shown in the status of the driver. */
  readonly tell: (state: string) => void;
}

interface Served extends KeeperParts {
  readonly source: RadioSource;
  readonly asset: RadioAsset;
  readonly memory: Memory;
  readonly pace: Pace;
}

/** Resolves when the host's signal aborts, or with the reason when the radio refuses us for good. */
export async function keepRadio(parts: KeeperParts): Promise<string | undefined> {
  const { host, radio, limits, registry } = parts;
  const memory = await Memory.open(host.stateFile(fileNameOf(`${radio.host} ${portOf(radio)}`)), host.log);
  if (memory.facts.mac !== undefined) registry.remember(radio.name, memory.facts.mac);
  if (host.signal.aborted) return undefined;
  const pace = new Pace();
  const source = openSource({ ...parts, memory, hooks: pace });
  const served = { ...parts, source, asset: new RadioAsset(parts), memory, pace };
  const serving = serveAgainAndAgain(served);
  try {
    await Promise.race([serving, aborted(host.signal)]);
    served.asset.lose('the connector was stopped');
    await within(limits.farewell_ms, source.farewell());
  } finally {
    source.close();
    pace.end();
  }
  return serving;
}

async function serveAgainAndAgain(served: Served): Promise<string | undefined> {
  const { host, radio, limits, asset, pace, tell } = served;
  let pauses = backoff(limits.retry_first_ms, limits.retry_max_ms);
  let down_since_ms: number | undefined;
  while (!host.signal.aborted) {
    let up_since_ms: number | undefined;
    const onUp = (): void => {
      up_since_ms = performance.now();
      if (down_since_ms !== undefined) {
        const down_s = (performance.now() - down_since_ms) / 1_000;
        host.log.info({ radio: radio.name, down_s }, 'radio is back');
      }
      down_since_ms = undefined;
      tell('online');
    };
    try {
      await serve(served, onUp);
    } catch (error) {
      if (host.signal.aborted) break;
      const reason = pace.away ?? messageOf(error);
      asset.lose(reason);
      pace.fail(reason);
      tell(reason);
      if (error instanceof DeviceRejected) {
        host.log.error(
          { radio: radio.name, reason },
          'radio refuses the connector; waiting for a new configuration',
        );
        return messageOf(error);
      }
      if (up_since_ms !== undefined && performance.now() - up_since_ms >= limits.stable_ms) {
        pauses = backoff(limits.retry_first_ms, limits.retry_max_ms);
      }
      const retry_ms = Math.round(pauseAfter(error, served, pauses));
      if (down_since_ms === undefined) {
        host.log.warn({ radio: radio.name, reason, retry_ms }, 'radio is unavailable');
      }
      down_since_ms ??= performance.now();
      await sleep(retry_ms, host.signal);
    }
  }
  return undefined;
}

function pauseAfter(error: unknown, { pace, limits }: Served, pauses: Iterator<number, never>): number {
  if (error instanceof TryLater) return error.retry_ms;
  return pace.away === undefined ? pauses.next().value : limits.look_ms;
}

/** One connection: until the signal aborts; rejects when the radio is lost or refuses us. */
async function serve(served: Served, onUp: () => void): Promise<void> {
  const { host, radio, limits, source, asset, memory, pace, registry } = served;
  const known = await source.connect();
  const { mac } = known.identity;
  if (!registry.claim(radio.name, mac)) {
    throw new DeviceRejected('is a radio that another entry of radios names already; remove one of them');
  }
  if (memory.facts.mac !== mac) await memory.change({ mac });
  let failures = 0;
  let isAnnounced = false;
  while (!host.signal.aborted) {
    const begin_ms = performance.now();
    try {
      const reading = await source.poll();
      failures = 0;
      if (!isAnnounced) asset.announce(known);
      isAnnounced = true;
      asset.see(reading);
      pace.done(reading);
      onUp();
    } catch (error) {
      if (host.signal.aborted) return;
      failures += 1;
      const isFinal = error instanceof DeviceRejected || error instanceof TryLater || !isAnnounced;
      if (isFinal || failures >= limits.lost_after_polls) throw error;
      pace.fail(messageOf(error));
    }
    await pace.rest(Math.max(source.poll_ms - (performance.now() - begin_ms), 0), host.signal);
  }
}

/** The time between polls, which a command may cut short, and what commands have announced. */
class Pace implements KeeperHooks {
  #hurry: AbortController | undefined;
  #isWanted = false;
  #away: { readonly reason: string; readonly until_ms: number } | undefined;
  readonly #waiting = new Set<PromiseWithResolvers<Reading>>();

  /** Why the radio may be away now. */
  get away(): string | undefined {
    return this.#away && performance.now() < this.#away.until_ms ? this.#away.reason : undefined;
  }

  expectAway(reason: string, ms: number): void {
    this.#away = { reason, until_ms: performance.now() + ms };
  }

  async pollNow(signal: AbortSignal): Promise<Reading> {
    const waiting = Promise.withResolvers<Reading>();
    waiting.promise.catch(() => undefined);
    const onAbort = (): void => waiting.reject(new CommandRefused('stopped before the radio answered'));
    signal.addEventListener('abort', onAbort, { once: true });
    this.#waiting.add(waiting);
    this.#isWanted = true;
    this.#hurry?.abort();
    try {
      if (signal.aborted) onAbort();
      return await waiting.promise;
    } finally {
      this.#waiting.delete(waiting);
      signal.removeEventListener('abort', onAbort);
    }
  }

  done(reading: Reading): void {
    for (const { resolve } of this.#waiting) resolve(reading);
  }

  fail(reason: string): void {
    for (const { reject } of this.#waiting) reject(new CommandRefused(`the radio ${reason}`));
  }

  end(): void {
    this.fail('is not served any more');
  }

  async rest(ms: number, signal: AbortSignal): Promise<void> {
    const hurry = new AbortController();
    this.#hurry = hurry;
    if (!this.#isWanted) await sleep(ms, AbortSignal.any([signal, hurry.signal]));
    this.#isWanted = false;
    this.#hurry = undefined;
  }
}
