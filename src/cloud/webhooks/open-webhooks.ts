/** Builds the parts of webhooks from their settings. */
import type { ServiceLog } from '../service-log.ts';
import { AddressPolicy, type AddressRules } from './address-policy.ts';
import { Deliverer, type DelivererParts } from './deliverer.ts';
import type { Pauses } from './pauses.ts';
import { WebhookOperations } from './operations.ts';
import type { WebhookStore } from './webhook-store.ts';

export interface WebhookSettings extends AddressRules {
  /** For one delivery, from the resolution of the name to the end of the response. */
  readonly timeout_ms: number;
  /** A receiver that fails for so long is disabled. */
  readonly disable_after_ms: number;
  /** Left out: the usual ones. */
  readonly pauses?: Pauses | undefined;
  /** In [0, 1); left out: that of the process. */
  readonly random?: (() => number) | undefined;
}

interface Around {
  readonly store: WebhookStore;
  readonly log: ServiceLog;
  readonly meter: { readonly webhook: NonNullable<DelivererParts['count']> } | undefined;
}

export function openWebhooks(
  { store, log, meter }: Around,
  { allow, allow_http, random = Math.random, ...settings }: WebhookSettings,
) {
  const policy = new AddressPolicy({ allow, allow_http });
  const now = Date.now;
  const deliverer = new Deliverer({ store, log, policy, now, random, count: meter?.webhook, ...settings });
  return {
    operations: new WebhookOperations({
      store,
      policy,
      timeout_ms: settings.timeout_ms,
      now,
      wake: () => deliverer.wake(),
    }),
    wake: () => deliverer.wake(),
    run: async (signal: AbortSignal) => deliverer.run(signal),
  };
}
