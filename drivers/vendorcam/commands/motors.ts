/** Moves cameras, and stops them after a time. */
import { sleep } from '../../../src/platform/time.ts';
import type { Command } from '../host/replies.ts';
import { texts } from '../texts.ts';
import { EndedOrders, type EndedOrdersParts } from './ended-orders.ts';

export interface Move {
  readonly channel: number;
  readonly op: 'Up' | 'Down' | 'Left' | 'Right' | 'ZoomInc' | 'ZoomDec';
  /** Undefined where the motor has one speed. */
  readonly speed: number | undefined;
  /** Stop after this time. */
  readonly max_ms: number;
}

/** By channel. */
export class Motors extends EndedOrders<number> {
  constructor(parts: Omit<EndedOrdersParts<number>, 'endOf' | 'unconfirmed' | 'sent'>) {
    super({
      ...parts,
      endOf: (channel) => ptz(channel, { op: 'Stop' }),
      unconfirmed: (_channel, reason) => texts.stop_unconfirmed(reason),
      sent: texts.stop_sent,
    });
  }

  /** Moves until the time is over or `signal` aborts. Resolves with the time it moved, once the Stop was confirmed. */
  async move({ channel, op, speed, max_ms }: Move, signal: AbortSignal): Promise<number> {
    return this.during(channel, async () => {
      const param = speed === undefined ? { op } : { op, speed };
      const begin_ms = await this.begin(channel, ptz(channel, param), { urgency: 'urgent', signal });
      await sleep(max_ms - (performance.now() - begin_ms), signal);
      await this.end(channel);
      return Math.round(performance.now() - begin_ms);
    });
  }
}

export function ptz(channel: number, param: Readonly<Record<string, unknown>>): Command {
  return { cmd: 'PtzCtrl', action: 0, param: { channel, ...param } };
}
