/** Sends partner assets and their fixes, which clients pushed here, to kits whose own service keeps them too. */
import type { PartnerChange } from '../../contract/partners.ts';
import { everyInTurn } from '../../platform/time.ts';
import type { ServiceLog } from '../service-log.ts';
import { texts } from '../texts.ts';
import type { PartnerState } from '../stored/stored.ts';
import { MessageRefused } from './cloud-link.ts';
import type { Store } from '../store/sql-store.ts';

/** Changes and fixes of one kit leave together, the newest of each asset, at most once in this time. */
const tick_ms = 1_000;
/** A kit that did not answer is asked again. */
const again_ms = 60_000;
/** Kits with changes that wait; of more, the next birth of the kit brings them. */
const kits_max = 100_000;

export interface PartnerUpdateParts {
  readonly store: Pick<Store, 'kit' | 'partners' | 'partnerFixSent'>;
  readonly link: {
    /** Rejects with `MessageRefused` when the broker does not accept it, else when it could not be sent. */
    readonly sendPartner: (kit_id: string, asset_id: string, change: PartnerChange) => Promise<void>;
  };
  readonly log: Pick<ServiceLog, 'warn'>;
  readonly signal: AbortSignal;
}

export class PartnerUpdates {
  readonly #parts: PartnerUpdateParts;
  /** When each kit is due, on the monotonic clock. */
  readonly #due = new Map<string, number>();

  constructor(parts: PartnerUpdateParts) {
    this.#parts = parts;
    everyInTurn(tick_ms, parts.signal, async () => this.#sendDue());
  }

  /** Something of these kits changed here, or they have connected. */
  note(kit_ids: readonly string[]): void {
    for (const kit_id of kit_ids) {
      if (this.#due.size < kits_max || this.#due.has(kit_id)) this.#due.set(kit_id, 0);
    }
  }

  async #sendDue(): Promise<void> {
    const now_ms = performance.now();
    for (const [kit_id, at_ms] of this.#due) {
      if (at_ms > now_ms || this.#parts.signal.aborted) continue;
      this.#due.delete(kit_id);
      const isOpen = await this.#sendTo(kit_id).catch(() => true);
      if (isOpen && !this.#due.has(kit_id)) this.#due.set(kit_id, now_ms + again_ms);
    }
  }

  /** Returns whether the kit has to answer still. An offline kit is served at its next birth. */
  async #sendTo(kit_id: string): Promise<boolean> {
    const { store, log } = this.#parts;
    const { state } = (await store.kit(kit_id)) ?? {};
    if (state?.online !== true || state.partners !== true) return false;
    let isOpen = false;
    for (const partner of await store.partners(kit_id)) {
      try {
        await this.#sendOne(kit_id, partner);
      } catch (error) {
        // An update that the broker refuses must not keep the others from the kit.
        if (!(error instanceof MessageRefused)) throw error;
        log.warn({ kit_id, asset_id: partner.asset_id, reason: error.message }, texts.log_partner_refused);
      }
      isOpen ||= partner.peer_revision !== partner.revision;
    }
    return isOpen;
  }

  /** Sends what the kit does not have of the asset. */
  async #sendOne(kit_id: string, partner: PartnerState): Promise<void> {
    const { store, link } = this.#parts;
    const { asset_id, peer_revision, revision, gone, record } = partner;
    const fix = newFix(partner);
    if (peer_revision === revision && !fix) return;
    await link.sendPartner(kit_id, asset_id, { record: gone ? null : record, ...(fix && { fix: fix.data }) });
    if (fix) await store.partnerFixSent(kit_id, asset_id, fix.time_ms);
  }
}

/** The fix that the kit does not have. */
function newFix({ fix, fix_sent_ms, gone }: PartnerState): PartnerState['fix'] {
  return gone || !fix || fix.time_ms <= fix_sent_ms ? null : fix;
}
