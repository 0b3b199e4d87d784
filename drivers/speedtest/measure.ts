/** Measures one direction with several connections at once, within its limits of data and time. */
import { CommandRefused, messageOf } from '../../src/errors.ts';
import { reasonOf } from '../../src/platform/linux/bound-fd.ts';
import { every, sleep } from '../../src/platform/time.ts';
import { openConnection, type Target } from './connection.ts';
import { type Limits, Tally } from './tally.ts';
import { texts } from './texts.ts';
import { download, upload } from './transfer.ts';

/** Nothing moves for so long: the test is over. */
const stall_ms = 10_000;
const look_every_ms = 250;
/** Less is over before the connection has found its pace. */
const bytes_min = 100_000;

export interface Plan {
  readonly direction: 'download' | 'upload';
  readonly target: Target;
  readonly connections: number;
  readonly limits: Limits;
  readonly signal: AbortSignal;
  readonly progress: (message: string, pct: number) => void;
}

export interface Measured {
  readonly mbps: number;
  readonly bytes: number;
}

/** Resolves with the rate; throws `CommandRefused` when there is none. Leaves no connection behind in either case. */
export async function measure(plan: Plan): Promise<Measured> {
  const { direction, target, connections, limits, progress } = plan;
  const stop = new AbortController();
  const signal = AbortSignal.any([plan.signal, stop.signal]);
  let stalled = false;
  try {
    const opening = Array.from({ length: connections }, async () => openConnection(target, signal));
    const sockets = await Promise.all(opening);
    const tally = new Tally(limits);
    progress(direction, 0);
    every(look_every_ms, signal, () => {
      const so_far = tally.mbps();
      progress(so_far === null ? direction : `${direction} ${so_far} Mbit/s`, tally.pct());
      stalled = tally.silence_ms() > stall_ms;
      if (stalled) stop.abort();
    });
    const move = direction === 'download' ? download : upload;
    const moves = sockets.map(async (socket) => move(socket, target.url, tally));
    // What is under way when the time is over is cut off, and does not count.
    await Promise.race([Promise.all(moves), sleep(limits.ms_max, signal)]);
    const [mbps, { bytes }] = [tally.mbps(), tally];
    if (signal.aborted) throw new CommandRefused(texts.stopped);
    if (mbps === null || bytes < Math.min(bytes_min, limits.bytes_max))
      throw new CommandRefused(tooLittle(plan, bytes));
    return { mbps, bytes };
  } catch (error) {
    if (plan.signal.aborted) throw new CommandRefused(texts.stopped_unrecorded);
    const reason = stalled ? texts.stalled(stall_ms / 1_000) : wordsOf(error);
    throw new CommandRefused(texts.failed(direction, target.device, reason), { cause: error });
  } finally {
    stop.abort();
  }
}

/** Node's words for a connection that ends ("socket hang up", "read ECONNRESET") are no sentences. */
function wordsOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : undefined;
  if (code === 'ECONNRESET' || code === 'EPIPE') return texts.server_closed;
  const words = code === undefined ? undefined : reasonOf(code);
  return words === undefined || words === code ? messageOf(error) : words;
}

function tooLittle({ target, limits }: Plan, bytes: number): string {
  return texts.too_little(bytes, limits.ms_max / 1_000, target.url.host);
}
