/** The loop that keeps a session, on a fake clock: sessions and attempts are played by the test. */
import { describe, expect, it, vi } from 'vitest';
import { ConnectFailed } from '../../../src/mqtt/connect-failed.ts';
import { keepConnected, ProtocolChoice, type ReconnectOptions } from '../../../src/mqtt/reconnect.ts';
import type { Session } from '../../../src/mqtt/session.ts';
import { texts } from '../../../src/mqtt/texts.ts';
import { useFakeTime } from '../../support/fake-time.ts';

useFakeTime();

const retry = { first_ms: 1_000, max_ms: 8_000 };
const session = {} as Session;
const refused = new ConnectFailed('not authorized (0x87)', 'refused', 0x87);
const hung_up = new ConnectFailed(texts.closed_early, 'closed');

interface Loop {
  readonly opened: string[];
  readonly pauses: number[];
  readonly failures: { readonly error: unknown; readonly isOtherVersionDue: boolean }[];
  stop(): Promise<void>;
}

/** `random` 1 makes each pause as long as its span. */
function start({
  version = '5',
  ...changes
}: Partial<ReconnectOptions> & { readonly version?: 'auto' | '5' }): Loop {
  const end = new AbortController();
  const opened: string[] = [];
  const pauses: number[] = [];
  const failures: Loop['failures'] = [];
  const { open = async () => session, ...rest } = changes;
  const protocol = new ProtocolChoice(version, () => performance.now());
  const running = keepConnected(
    {
      protocol: () => protocol,
      retry,
      now: () => performance.now(),
      random: () => 1,
      open: async (protocol, signal) => {
        opened.push(protocol);
        return open(protocol, signal);
      },
      serve: async () => 'later',
      onAttempt: () => undefined,
      onFailed(error, { isOtherVersionDue }) {
        failures.push({ error, isOtherVersionDue });
        return 'later';
      },
      onPause: (pause_ms) => pauses.push(pause_ms),
      ...rest,
    },
    end.signal,
  );
  return {
    opened,
    pauses,
    failures,
    async stop() {
      end.abort();
      await running;
    },
  };
}

const served =
  (held_ms: number, next: 'at_once' | 'soon' | 'later' = 'later'): ReconnectOptions['serve'] =>
  async (_, signal) => {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, held_ms);
      signal.addEventListener('abort', () => {
        clearTimeout(timer);
        resolve();
      });
    });
    return next;
  };

describe('keepConnected', () => {
  it('doubles the pause after each failure up to the longest', async () => {
    const loop = start({ open: async () => Promise.reject(refused) });
    await vi.advanceTimersByTimeAsync(30_000);
    expect(loop.pauses).toEqual([1_000, 2_000, 4_000, 8_000, 8_000, 8_000]);
    expect(loop.failures.every(({ error }) => error === refused)).toBe(true);
    await loop.stop();
  });

  it('ends a pause and an attempt that a changed route made pointless, and starts again with the shortest pause', async () => {
    let hurry = new AbortController();
    const hurryUp = (): void => {
      const before = hurry;
      hurry = new AbortController();
      before.abort();
    };
    let hangs = false;
    const open: ReconnectOptions['open'] = async (_, signal) => {
      if (hangs) await new Promise((resolve) => signal.addEventListener('abort', resolve));
      throw refused;
    };
    const loop = start({ open, hurry: () => hurry.signal });
    await vi.advanceTimersByTimeAsync(3_500);
    expect(loop.opened).toHaveLength(3);
    hangs = true;
    hurryUp();
    await vi.advanceTimersByTimeAsync(0);
    expect(loop.opened).toHaveLength(4);
    hangs = false;
    hurryUp();
    await vi.advanceTimersByTimeAsync(0);
    expect(loop.opened).toHaveLength(5);
    expect(loop.pauses.at(-1)).toBe(1_000);
    expect(loop.failures).toHaveLength(4);
    await loop.stop();
  });

  it('connects without a pause after a session that asks for it, however long it has held', async () => {
    const ends: ('at_once' | 'later')[] = ['at_once', 'later'];
    const loop = start({ serve: async (...args) => served(100_000, ends.shift() ?? 'later')(...args) });
    await vi.advanceTimersByTimeAsync(100_000);
    expect([loop.opened.length, loop.pauses]).toEqual([2, []]);
    await loop.stop();
  });

  it('tries the other version of MQTT without a pause and keeps it once it is accepted', async () => {
    const open: ReconnectOptions['open'] = async (protocol) =>
      protocol === '5' ? Promise.reject(hung_up) : session;
    const loop = start({ version: 'auto', open, serve: served(100) });
    await vi.advanceTimersByTimeAsync(0);
    expect(loop.opened).toEqual(['5', '3.1.1']);
    expect(loop.failures).toEqual([{ error: hung_up, isOtherVersionDue: true }]);
    await vi.advanceTimersByTimeAsync(1_500);
    expect(loop.opened).toEqual(['5', '3.1.1', '3.1.1']);
    await loop.stop();
  });

  it('increases the pauses while sessions end soon after they began', async () => {
    const loop = start({ serve: served(10_000) });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(loop.pauses.slice(0, 4)).toEqual([1_000, 2_000, 4_000, 8_000]);
    await loop.stop();
  });

  it('starts the pauses again at the shortest after a session that held for a minute', async () => {
    const held_ms = [1_000, 1_000, 60_001, 1_000];
    const loop = start({
      serve: async (...args) => served(held_ms.shift() ?? 1_000_000)(...args),
    });
    await vi.advanceTimersByTimeAsync(80_000);
    expect(loop.pauses).toEqual([1_000, 2_000, 1_000, 2_000]);
    await loop.stop();
  });

  it('resets the back-off when the session requests a quick reconnect', async () => {
    const loop = start({ serve: served(10, 'soon') });
    await vi.advanceTimersByTimeAsync(4_000);
    expect(loop.pauses.slice(0, 3)).toEqual([1_000, 1_000, 1_000]);
    await loop.stop();
  });

  it('ends during a pause without another attempt', async () => {
    const loop = start({ open: async () => Promise.reject(refused) });
    await vi.advanceTimersByTimeAsync(100);
    await loop.stop();
    expect(loop.opened).toHaveLength(1);
  });

  it('reports no failure of an attempt that its own stop ended', async () => {
    const open: ReconnectOptions['open'] = async (_, signal) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(hung_up));
      });
    const loop = start({ version: 'auto', open });
    await vi.advanceTimersByTimeAsync(10);
    await loop.stop();
    expect(loop.failures).toEqual([]);
  });
});
