/** The messages that the broker refused for good: listed, returned to the buffer or dropped, by command. */
import type { Ledger } from './ledger.ts';
import type { StoreClient } from './live/disk/store-client.ts';
import type { QuarantinedMessage, QuarantinedRow } from './protocol.ts';
import type { RowId } from './row.ts';

interface QuarantineParts {
  readonly client: StoreClient;
  readonly ledger: Ledger;
  /** Called when rows are in the buffer again. */
  readonly returned: () => void;
}

export class Quarantine {
  readonly #parts: QuarantineParts;

  constructor(parts: QuarantineParts) {
    this.#parts = parts;
  }

  /** The next rows after a number, without their bodies; at most `quarantine_page_rows`. */
  async list(after: RowId = 0): Promise<readonly QuarantinedRow[]> {
    return this.#parts.client.listQuarantined(after);
  }

  async find(id: RowId): Promise<QuarantinedMessage | undefined> {
    return this.#parts.client.findQuarantined(id);
  }

  /** Returns these rows, or all of them, to the buffer; answers how many. */
  async retry(ids: readonly RowId[] | undefined): Promise<number> {
    const { client, ledger, returned } = this.#parts;
    const before = ledger.quarantined_rows;
    ledger.committed(await client.retryQuarantined(ids), 0);
    returned();
    return before - ledger.quarantined_rows;
  }

  /** Drops these rows, or all of them; answers how many. */
  async discard(ids: readonly RowId[] | undefined): Promise<number> {
    const { client, ledger } = this.#parts;
    const before = ledger.quarantined_rows;
    ledger.committed(await client.discardQuarantined(ids), 0);
    return before - ledger.quarantined_rows;
  }
}
