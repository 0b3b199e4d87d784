/** Receives events of a camera by webhook, for cameras that cannot be pulled. */
import { sleep } from '../../../src/platform/time.ts';
import type { EventListener } from './pull-point.ts';
import { describe } from '../soap/soap.ts';
import { readEnvelope } from '../soap/envelope.ts';
import { renew, subscribe, synchronise, unsubscribe } from './subscription.ts';
import type { Webhook } from './webhook.ts';
import { texts } from '../texts.ts';

const renew_share = 0.6;

/**
 * Runs until the signal aborts. Resolves with the reason when the camera refuses or loses the subscription;
 * throws DeviceUnreachable when it does not answer any more.
 */
export async function receiveCalls(
  listener: EventListener,
  webhook: Webhook,
  local_address: string | undefined,
): Promise<string> {
  const { soap, url, signal, onEvents, onSubscribed, onLost, pull_s, expectAlive } = listener;
  const hook = await webhook.open(async (xml) => {
    const reading = readEnvelope(xml);
    if (reading.kind === 'read') onEvents(reading.body);
    return Promise.resolve();
  });
  if (typeof hook === 'string') return hook;
  try {
    const made = await subscribe(soap, url, hook.url(local_address));
    if ('kind' in made) {
      onLost(describe(made));
      await expectAlive();
      return describe(made);
    }
    try {
      onSubscribed(async () => synchronise(soap, made));
      await synchronise(soap, made);
      let renewed_ms = performance.now();
      while (!signal.aborted) {
        await sleep(Math.min(pull_s, made.lifetime_s * renew_share) * 1_000, signal);
        if (signal.aborted) break;
        await expectAlive();
        if (performance.now() - renewed_ms < made.lifetime_s * renew_share * 500) continue;
        if ((await renew(soap, made)) === undefined) {
          onLost(texts.subscription_lost);
          return texts.not_renewed;
        }
        renewed_ms = performance.now();
      }
    } finally {
      await unsubscribe(soap, made);
    }
    return 'stopped';
  } finally {
    hook.close();
  }
}
