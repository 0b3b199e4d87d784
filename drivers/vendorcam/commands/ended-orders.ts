/** Orders that another one must end, as a Stop ends a move: it is owed on disk until the camera has confirmed it. */
import { CommandRefused, DeviceUnreachable, messageOf } from '../../../src/platform/errors.ts';
import type { OwedStops } from '../../../src/toolkit/device/owed-stops.ts';
import { sleep } from '../../../src/platform/time.ts';
import type { Device } from '../host/device.ts';
import { type FaultKind, refusalOf } from '../host/rsp-codes.ts';
import type { Limits } from '../limits.ts';
import { type Command, faultIn } from '../host/replies.ts';

/** After these nothing has begun. */
const certain_refusals: ReadonlySet<FaultKind> = new Set(['unsupported', 'forbidden', 'bad_request']);

type OrderOptions = NonNullable<Parameters<Device['order']>[1]>;

export interface EndedOrdersParts<K extends string | number> {
  readonly device: Pick<Device, 'order'>;
  readonly limits: Pick<Limits, 'stop_tries' | 'stop_gap_ms'>;
  readonly owed: OwedStops<K>;
  /** Ends the pauses between two attempts. */
  readonly signal: AbortSignal;
  /** What ends it. */
  readonly endOf: (key: K) => Command;
  /** Why the end is not confirmed. */
  readonly unconfirmed: (key: K, reason: string) => string;
  /** The order was not answered, and the end was sent. */
  readonly sent: (reason: string) => string;
}

export class EndedOrders<K extends string | number> {
  readonly #parts: EndedOrdersParts<K>;

  constructor(parts: EndedOrdersParts<K>) {
    this.#parts = parts;
  }

  /** Runs what begins and ends an order; `settle` leaves it alone meanwhile. */
  async during<T>(key: K, work: () => Promise<T>): Promise<T> {
    return this.#parts.owed.during(key, work);
  }

  /** Resolves with when the order was sent, once the camera has accepted it. `wasOn`: an earlier order has begun the same. */
  async begin(key: K, order: Command, options: OrderOptions, wasOn = false): Promise<number> {
    const { device, owed, sent } = this.#parts;
    await owed.owe(key);
    const sent_ms = performance.now();
    try {
      const fault = faultIn(await device.order(order, options));
      if (fault && certain_refusals.has(fault.kind)) throw refusalOf(fault);
      // "Timeout" and similar errors come from a part of the device that does not know what became of it.
      if (fault) throw new DeviceUnreachable(fault.sentence);
      return sent_ms;
    } catch (error) {
      if (error instanceof CommandRefused) {
        if (!wasOn) await owed.confirm(key);
        throw error;
      }
      await this.end(key);
      throw new CommandRefused(sent(messageOf(error)));
    }
  }

  /** Rejects with CommandRefused when the camera does not confirm the end. */
  async end(key: K): Promise<void> {
    const { device, limits, owed, signal, endOf, unconfirmed } = this.#parts;
    let reason = '';
    for (let attempt = 0; attempt < limits.stop_tries; attempt += 1) {
      try {
        const fault = faultIn(await device.order(endOf(key), { urgency: 'urgent' }));
        if (!fault) {
          await owed.confirm(key);
          return;
        }
        reason = fault.sentence;
      } catch (error) {
        reason = messageOf(error);
      }
      await sleep(limits.stop_gap_ms, signal);
    }
    await owed.owe(key);
    throw new CommandRefused(unconfirmed(key, reason));
  }

  /** Sends what is owed, also from before a restart, but nothing that a command in progress sends itself. */
  async settle(): Promise<void> {
    await this.#parts.owed.settle(async (key) => this.during(key, async () => this.end(key)));
  }

  /** Resolves when no command is under way; their signals have aborted. */
  async idle(): Promise<void> {
    await this.#parts.owed.idle();
  }
}
