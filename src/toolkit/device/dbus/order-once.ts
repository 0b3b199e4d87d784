/** Sends an order that may end what answers it: the machine, or a device behind the bus. */
import { DeviceUnreachable, messageOf } from '../../../platform/errors.ts';
import type { Bus, Call, Reply } from './bus.ts';

/**
 * Sends `order` once. A lost reply counts as accepted, so the caller must observe the effect; a connection that was lost before
 * is a refusal, since nothing was sent.
 */
export async function orderOnce(bus: Bus, order: Call): Promise<Reply> {
  if (bus.lost.aborted) return { ok: false, reason: messageOf(bus.lost.reason) };
  try {
    return await bus.call(order);
  } catch (error) {
    if (error instanceof DeviceUnreachable) return { ok: true, value: undefined };
    throw error;
  }
}
