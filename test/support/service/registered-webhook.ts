/** A webhook as its registration stores it: enabled, and nothing delivered yet. */
import type { Webhook } from '../../../src/cloud/webhooks/enqueue.ts';

type Registered = Omit<Webhook, 'counts' | 'key_ends_ms'>;
type Chosen = Pick<Registered, 'webhook_id' | 'url' | 'types' | 'kits' | 'key_id' | 'created_ms'>;

export function registeredWebhook(
  chosen: Chosen & Partial<Pick<Registered, 'secrets' | 'assets' | 'severity_min'>>,
): Registered {
  return {
    label: 'test',
    assets: '*',
    severity_min: 'info',
    secrets: [],
    disabled_reason: null,
    failing_since_ms: null,
    failures: 0,
    last_fault: null,
    delivered_ms: null,
    ...chosen,
  };
}
