/** A webhook as its registration stores it. */
import type { WebhookStore } from '../../../src/cloud/webhooks/webhook-store.ts';

type Registered = Parameters<WebhookStore['addWebhook']>[0];
type Chosen = 'webhook_id' | 'url' | 'types' | 'kits' | 'key_id' | 'created_ms';

export function registeredWebhook(chosen: Pick<Registered, Chosen> & Partial<Registered>): Registered {
  return { label: 'test', assets: '*', severity_min: 'info', secrets: [], ...chosen };
}
