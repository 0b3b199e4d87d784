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
  readonly log: Log;
  /** None while the service does not run. */
  readonly partners: () => Promise<readonly PartnerState[]>;
}

export class PartnerPublisher {
  readonly #parts: PublisherParts;
  #isAppending = false;

  constructor(parts: PublisherParts) {
    this.#parts = parts;
  }

  /** Whether the row that is being accepted is of the service itself, which has what it says. */
  get isAppending(): boolean {
    return this.#isAppending;
  }

  readonly onPartner: OnPartner = ({ asset_id, message }) => {
    if (message) {
      this.#append({ channel: channels.feed(asset_id, message.feed), lane: 'feed', data: message.data });
      return;
    }
    this.publish(asset_id).catch((error: unknown) => {
      this.#parts.log.warn({ reason: messageOf(error) }, texts.partner_failed);
    });
  };

  /** `asset_id` left out: all of them. */
  async publish(asset_id?: string): Promise<void> {
    for (const partner of await this.#parts.partners()) {
      if (asset_id !== undefined && partner.asset_id !== asset_id) continue;
      const data = partner.record && jsonObject.parse({ ...partner.record });
      this.#append({ channel: channels.partner(partner.asset_id), lane: 'presence', data });
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
