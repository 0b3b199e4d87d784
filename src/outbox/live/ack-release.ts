/** Releases from the store what the cloud has acknowledged, counts it, and resumes what waited for it. */
import type { Ledger } from '../ledger.ts';
import type { OutboxLog } from '../api.ts';
import { texts } from '../texts.ts';
import type { StoreClient } from './disk/store-client.ts';
import type { Dispatch } from './dispatch.ts';
import type { Stored } from './in-flight.ts';
import type { Resender } from './resender.ts';

interface AckReleaseOptions {
  readonly client: Pick<StoreClient, 'confirm'>;
  /** The last number given out in an epoch of this run. */
  readonly lastSeq: (epoch: number) => number | undefined;
  readonly ledger: Ledger;
  readonly resender: Resender;
  readonly dispatch: () => Dispatch;
  readonly log: Pick<OutboxLog, 'warn'>;
}

export class AckRelease {
  readonly #options: AckReleaseOptions;
  /** An acknowledgement that cannot be about our messages is logged once: it comes again with every connection. */
  #is_ignored_logged = false;

  constructor(options: AckReleaseOptions) {
    this.#options = options;
  }

  /** Rejects with `StorageUnavailable` when the disk refuses it; then nothing was released. */
  async apply(stored: Stored): Promise<void> {
    const { client, lastSeq, ledger, resender, dispatch, log } = this.#options;
    const confirmed = await client.confirm({ ...stored, last_seq: lastSeq(stored.epoch) });
    ledger.committed(confirmed, 0);
    resender.acked(confirmed.released);
    // Resumes lanes that waited because too many rows were unconfirmed.
    if (confirmed.released > 0) dispatch().touchAll();
    if (!confirmed.ignored || this.#is_ignored_logged) return;
    this.#is_ignored_logged = true;
    log.warn({ epoch: stored.epoch, ...confirmed.ignored }, texts.ack_ignored);
  }
}
