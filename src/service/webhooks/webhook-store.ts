/** What webhooks need of a store. Every method may reject with `StorageUnavailable`. */
import type { Secret } from './signature.ts';
import type { WebhookEvent, WebhookType } from './events.ts';

/** A registered receiver. */
export interface Webhook {
  readonly webhook_id: string;
  readonly label: string;
  readonly url: string;
  readonly types: readonly WebhookType[];
  /** `*`: all of the key. */
  readonly kits: readonly string[] | '*';
  /** The key that registered or enabled it last: without a valid one nothing is queued or sent. */
  readonly key_id: string;
  readonly secrets: readonly Secret[];
  readonly created_ms: number;
  /** Null: it is enabled. */
  readonly disabled_reason: string | null;
  /** Since when no delivery succeeded; null: the last one did. */
  readonly failing_since_ms: number | null;
  /** In a row. */
  readonly failures: number;
  readonly last_fault: string | null;
  readonly delivered_ms: number | null;
  readonly counts: WebhookCounts;
}

/** accepted = delivered + waiting + dead + purged. */
export interface WebhookCounts {
  readonly accepted: number;
  readonly delivered: number;
  readonly waiting: number;
  readonly dead: number;
  /** Deleted from the lists: by a client, with an erasure, or as the oldest of too many dead ones. */
  readonly purged: number;
  /** Came while it was disabled, and were not accepted. */
  readonly missed: number;
}

export interface WebhookEdit {
  readonly label?: string | undefined;
  readonly url?: string | undefined;
  readonly types?: readonly WebhookType[] | undefined;
  readonly kits?: readonly string[] | '*' | undefined;
  readonly secrets?: readonly Secret[] | undefined;
  /** Undefined: stays; null: enabled, by this key. */
  readonly disabled_reason?: string | null | undefined;
  readonly key_id?: string | undefined;
}

/** A message for a receiver. */
export interface QueuedMessage extends Omit<WebhookEvent, 'type' | 'unsynced'> {
  /** A later version may have queued one that this version does not know. */
  readonly type: string;
  readonly webhook_id: string;
  /** Begun ones. */
  readonly attempts: number;
  readonly queued_ms: number;
  /** Of a dead one. */
  readonly dead_ms: number | null;
  readonly reason: string | null;
}

export interface ClaimRequest {
  readonly webhook_id: string;
  readonly limit: number;
  readonly now_ms: number;
  /** Another replica may claim it after this. */
  readonly lease_ms: number;
  /** Names this claim. */
  readonly lease: string;
}

/** How an attempt ended. */
export type Settlement = { readonly webhook_id: string; readonly id: string; readonly lease: string } & (
  | { readonly kind: 'delivered'; readonly now_ms: number }
  /** Nothing is known of it: it is claimed again at once. */
  | { readonly kind: 'released' }
  | {
      readonly kind: 'failed';
      readonly now_ms: number;
      readonly reason: string;
      /** Null: given up. */
      readonly retry_ms: number | null;
      /** No attempt at this receiver before. */
      readonly pause_until_ms: number;
      /** The receiver is disabled for this reason, when it has failed since this time or longer. */
      readonly disable?: { readonly reason: string; readonly failing_since_ms: number };
    }
);

export interface DeadQuery {
  readonly webhook_id: string;
  /** The one after this in the order of the list: newest first. */
  readonly after?: { readonly dead_ms: number; readonly id: string } | undefined;
  readonly limit: number;
}

export interface WebhookStore {
  readonly webhooks: () => Promise<readonly Webhook[]>;
  readonly webhook: (webhook_id: string) => Promise<Webhook | undefined>;
  /** False: there are as many as there may be. */
  readonly addWebhook: (webhook: Omit<Webhook, 'counts'>) => Promise<boolean>;
  readonly changeWebhook: (webhook_id: string, edit: WebhookEdit) => Promise<boolean>;
  /** With its messages. */
  readonly removeWebhook: (webhook_id: string) => Promise<boolean>;
  /** Queues events for kits that fell silent and for kits that send again. Returns whether there were any. */
  readonly noteSilences: (now_ms: number) => Promise<boolean>;
  /** Receivers with a message that is due. */
  readonly dueWebhooks: (now_ms: number) => Promise<readonly Webhook[]>;
  /** When a message for an enabled receiver is due next, or may be: one in progress counts as due. Undefined: none waits. */
  readonly nextDue: (now_ms: number) => Promise<number | undefined>;
  /**
   * Takes messages that are due for this process: no other one gets them before `lease_ms`. Of one subject (an asset, or a kit
   * itself) it takes one, and none while an earlier one is due or in progress.
   */
  readonly claimMessages: (claim: ClaimRequest) => Promise<readonly QueuedMessage[]>;
  /** Stores the outcomes, but of messages that another claim has taken. Returns of each whether the receiver was disabled by it. */
  readonly settleMessages: (
    settlements: readonly Settlement[],
  ) => Promise<readonly { readonly disabled: boolean }[]>;
  readonly deadMessages: (query: DeadQuery) => Promise<readonly QueuedMessage[]>;
  /** Queues dead messages again, all of them or these. Returns how many. */
  readonly replayDead: (webhook_id: string, ids: readonly string[] | '*', now_ms: number) => Promise<number>;
  /** Deletes dead messages, all of them or these. Returns how many. */
  readonly purgeDead: (webhook_id: string, ids: readonly string[] | '*') => Promise<number>;
}
