/** Publishes the partner assets of the kit's own service to the cloud. */
import { jsonObject } from '../contract/json.ts';
import { channels } from '../contract/topics.ts';
import { messageOf } from '../errors.ts';
import type { Appender, Draft } from '../outbox/api.ts';
import type { Log } from '../platform/log/log.ts';
import type { OnPartner } from '../service/on-partner.ts';
import type { PartnerState } from '../service/store/store.ts';
import { texts } from './texts.ts';

export interface PublisherParts {
  readonly outbox: Appender;
  readonly log: Pick<Log, 'warn'>;
  /** None while the service does not run. */
  readonly partners: () => Promise<readonly PartnerState[]>;
}

export class PartnerPublisher {
  readonly #parts: PublisherParts;
  #isAppending = false;

  constructor(parts: PublisherParts) {
    this.#parts = parts;
  }

  /** Whether the row that is being accepted is of the service itself, which has its content already. */
  get isAppending(): boolean {
    return this.#isAppending;
  }

  readonly onPartner: OnPartner = ({ asset_id, message }) => {
    if (message) {
      this.#append({ channel: channels.feed(asset_id, message.feed), lane: 'feed', data: message.data });
      return;
    }
    void this.#tryToPublish(asset_id);
  };

  /** Publishes all of them. Never rejects: the kit works without the database of its service. */
  async announce(): Promise<void> {
    await this.#tryToPublish();
  }

  /** `asset_id` left out: all of them. */
  async publish(asset_id?: string): Promise<void> {
    for (const partner of await this.#parts.partners()) {
      if (asset_id !== undefined && partner.asset_id !== asset_id) continue;
      const data = partner.record && jsonObject.parse({ ...partner.record });
      this.#append({ channel: channels.partner(partner.asset_id), lane: 'presence', data });
    }
  }

  async #tryToPublish(asset_id?: string): Promise<void> {
    try {
      await this.publish(asset_id);
    } catch (error) {
      this.#parts.log.warn({ reason: messageOf(error) }, texts.partner_failed);
    }
  }

  #append(draft: Draft): void {
    this.#isAppending = true;
    try {
      this.#parts.outbox.append(draft);
    } finally {
      this.#isAppending = false;
    }
  }
}
