/**
 * Looks once a second whether the buffer file is still where it was opened: while nothing is written, no commit notices that it was
 * deleted or replaced.
 */
import { every } from '../../../platform/time.ts';
import type { Done } from '../../protocol.ts';
import type { StoreClient } from './store-client.ts';

const look_every_ms = 1_000;

interface LookOptions {
  readonly client: Pick<StoreClient, 'look'>;
  /** Commits are tried again and again: only they show that the disk takes anything. */
  readonly isDiskFailing: () => boolean;
  readonly seen: (done: Done) => void;
  readonly failed: (error: unknown) => void;
}

export function lookAtFile({ client, isDiskFailing, seen, failed }: LookOptions, signal: AbortSignal): void {
  let isLooking = false;
  const look = async (): Promise<void> => {
    try {
      const done = await client.look();
      if (!isDiskFailing()) seen(done);
    } catch (error) {
      failed(error);
    } finally {
      isLooking = false;
    }
  };
  every(look_every_ms, signal, () => {
    // One look at a time: a thread that hangs must not find a queue of them.
    if (isLooking || isDiskFailing()) return;
    isLooking = true;
    void look();
  });
}
