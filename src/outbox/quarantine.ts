/** The messages that the broker refused for good: listed, returned to the buffer or dropped, by command. */
import type { Ledger } from './ledger.ts';
import type { StoreClient } from './live/disk/store-client.ts';
import type { QuarantinedMessage, QuarantinedRow } from './protocol.ts';
import type { RowId } from './row.ts';

export class Quarantine {
  readonly #client: StoreClient;
  readonly #ledger: Ledger;
  readonly #returned: () => void;

  /** `returned`: called when rows are in the buffer again. */
  constructor(client: StoreClient, ledger: Ledger, returned: () => void) {
    this.#client = client;
    this.#ledger = ledger;
    this.#returned = returned;
  }

  /** The next rows after a number, without their bodies; at most `quarantine_page_rows`. */
  async list(after: RowId = 0): Promise<readonly QuarantinedRow[]> {
    return this.#client.listQuarantined(after);
  }

  async find(id: RowId): Promise<QuarantinedMessage | undefined> {
    return this.#client.findQuarantined(id);
  }

  /** Returns these rows, or all of them, to the buffer; answers how many. */
  async retry(ids: readonly RowId[] | undefined): Promise<number> {
    const before = this.#ledger.quarantined_rows;
    this.#ledger.committed(await this.#client.retryQuarantined(ids), 0);
    this.#returned();
    return before - this.#ledger.quarantined_rows;
  }

  /** Drops these rows, or all of them; answers how many. */
  async discard(ids: readonly RowId[] | undefined): Promise<number> {
    const before = this.#ledger.quarantined_rows;
    this.#ledger.committed(await this.#client.discardQuarantined(ids), 0);
    return before - this.#ledger.quarantined_rows;
  }
}
