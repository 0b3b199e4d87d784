/** Moves cameras and stops them: every move requires a Stop, which is kept on disk until the camera has confirmed it. */
import { CommandRefused, DeviceUnreachable, messageOf } from '../../../src/platform/errors.ts';
import type { OwedStops } from '../../../src/toolkit/device/owed-stops.ts';
import { sleep } from '../../../src/platform/time.ts';
import type { Device } from '../host/device.ts';
import { type FaultKind, refusalOf } from '../host/rsp-codes.ts';
import type { Limits } from '../limits.ts';
import { type Command, faultIn } from '../host/replies.ts';
import { texts } from '../texts.ts';

/** After these the camera has not moved. */
const certain_refusals: ReadonlySet<FaultKind> = new Set(['unsupported', 'forbidden', 'bad_request']);

export interface MotorParts {
  readonly device: Pick<Device, 'order'>;
  readonly limits: Pick<Limits, 'stop_tries' | 'stop_gap_ms'>;
  /** By channel. */
  readonly owed: OwedStops<number>;
  /** Ends the pauses between two attempts to stop. */
  readonly signal: AbortSignal;
}

export interface Move {
  readonly channel: number;
  readonly op: 'Up' | 'Down' | 'Left' | 'Right' | 'ZoomInc' | 'ZoomDec';
  /** Undefined where the motor has one speed. */
  readonly speed: number | undefined;
  /** Stop after this time. */
  readonly max_ms: number;
}

export class Motors {
  readonly #parts: MotorParts;

  constructor(parts: MotorParts) {
    this.#parts = parts;
  }

  /** Moves until the time is over or `signal` aborts. Resolves with the time it moved, once the Stop was confirmed. */
  async move(move: Move, signal: AbortSignal): Promise<number> {
    return this.#parts.owed.during(move.channel, async () => this.#move(move, signal));
  }

  /** Rejects with CommandRefused when the camera confirms no Stop. */
  async stop(channel: number): Promise<void> {
    const { device, limits, owed, signal } = this.#parts;
    let reason = '';
    for (let attempt = 0; attempt < limits.stop_tries; attempt += 1) {
      try {
        const fault = faultIn(await device.order(ptz(channel, { op: 'Stop' }), { urgency: 'urgent' }));
        if (!fault) {
          await owed.confirm(channel);
          return;
        }
        reason = fault.sentence;
      } catch (error) {
        reason = messageOf(error);
      }
      await sleep(limits.stop_gap_ms, signal);
    }
    await owed.owe(channel);
    throw new CommandRefused(texts.stop_unconfirmed(reason));
  }

  /** Sends the pending Stops, also from before a restart, but not those of moves in progress. */
  async settle(): Promise<void> {
    await this.#parts.owed.settle(async (channel) => this.stop(channel));
  }

  /** Resolves when no move is under way; their signals have aborted. */
  async idle(): Promise<void> {
    await this.#parts.owed.idle();
  }

  async #move({ channel, op, speed, max_ms }: Move, signal: AbortSignal): Promise<number> {
    const { device, owed } = this.#parts;
    await owed.owe(channel);
    const begin_ms = performance.now();
    try {
      const param = speed === undefined ? { op } : { op, speed };
      const fault = faultIn(await device.order(ptz(channel, param), { urgency: 'urgent', signal }));
      if (fault && certain_refusals.has(fault.kind)) throw refusalOf(fault);
      // "Timeout" and similar errors come from a part of the device that has no state of the motor.
      if (fault) throw new DeviceUnreachable(fault.sentence);
    } catch (error) {
      if (error instanceof CommandRefused) {
        // The camera has not moved.
        await owed.confirm(channel);
        throw error;
      }
      await this.stop(channel);
      throw new CommandRefused(texts.stop_sent(messageOf(error)));
    }
    await sleep(max_ms - (performance.now() - begin_ms), signal);
    await this.stop(channel);
    return Math.round(performance.now() - begin_ms);
  }
}

export function ptz(channel: number, param: Readonly<Record<string, unknown>>): Command {
  return { cmd: 'PtzCtrl', action: 0, param: { channel, ...param } };
}
