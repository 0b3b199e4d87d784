/** Sirens and lights: switched on for a limited time, and every On requires an Off, which is kept on disk until it was confirmed. */
import { z } from 'zod';
import type { OwedStops } from '../../../src/toolkit/device/owed-stops.ts';
import {
  type Command,
  command_timeout_default_ms,
  defineCommand,
} from '../../../src/toolkit/driver/command.ts';
import { CommandRefused, DeviceUnreachable, messageOf } from '../../../src/platform/errors.ts';
import { sleep } from '../../../src/platform/time.ts';
import type { Device } from '../host/device.ts';
import { type FaultKind, refusalOf } from '../host/rsp-codes.ts';
import { type Command as Order, faultIn } from '../host/replies.ts';
import type { Limits } from '../limits.ts';
import { texts } from '../texts.ts';
import type { SwitchKind } from '../host/remembered.ts';

/** Kind and channel, such as `siren 0`: what is kept on disk. */
export type SwitchKey = `${SwitchKind} ${number}`;

const durations = {
  siren: { max_s: 60, default_s: 10 },
  light: { max_s: 600, default_s: 60 },
} as const satisfies Record<SwitchKind, { readonly max_s: number; readonly default_s: number }>;
const about = {
  siren: 'Sounds the siren of the camera',
  light: 'Switches the light of the camera on',
} as const;

export interface SwitchParts {
  readonly device: Pick<Device, 'order'>;
  readonly limits: Pick<Limits, 'stop_tries' | 'stop_gap_ms'>;
  readonly owed: OwedStops<SwitchKey>;
  /** Aborts when the driver stops: everything is switched off. */
  readonly stopping: AbortSignal;
  /** Ends the pauses between two attempts; aborts later. */
  readonly signal: AbortSignal;
}

/** After these it is not on. */
const certain_refusals: ReadonlySet<FaultKind> = new Set(['unsupported', 'forbidden', 'bad_request']);

export class Switches {
  readonly #parts: SwitchParts;
  /** Ends the time of what is on now. */
  readonly #holds = new Map<SwitchKey, AbortController>();

  constructor(parts: SwitchParts) {
    this.#parts = parts;
  }

  /** Switches on, and off again after this time. Resolves when the camera has accepted the On. */
  async on(key: SwitchKey, max_ms: number, signal: AbortSignal): Promise<void> {
    await this.#parts.owed.during(key, async () => this.#on(key, max_ms, signal));
  }

  async #on(key: SwitchKey, max_ms: number, signal: AbortSignal): Promise<void> {
    const { device, owed } = this.#parts;
    await owed.owe(key);
    try {
      const fault = faultIn(await device.order(orderOf(key, true), { signal }));
      if (fault && !certain_refusals.has(fault.kind)) throw new DeviceUnreachable(fault.sentence);
      if (fault) throw refusalOf(fault);
    } catch (error) {
      if (error instanceof CommandRefused) {
        // It is not on, unless an earlier command switched it on.
        if (!this.#holds.has(key)) await owed.confirm(key);
        throw error;
      }
      await this.#off(key);
      throw new CommandRefused(texts.off_sent(messageOf(error)));
    }
    // A failed Off is owed, and sent again when the camera answers.
    this.#hold(key, max_ms).catch(() => undefined);
  }

  /** Rejects with CommandRefused when the camera confirms no Off. */
  async off(key: SwitchKey): Promise<void> {
    await this.#parts.owed.during(key, async () => this.#off(key));
  }

  async #off(key: SwitchKey): Promise<void> {
    const { device, limits, owed, signal } = this.#parts;
    this.#holds.get(key)?.abort();
    this.#holds.delete(key);
    let reason = '';
    for (let attempt = 0; attempt < limits.stop_tries; attempt += 1) {
      try {
        const fault = faultIn(await device.order(orderOf(key, false), { urgency: 'urgent' }));
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
    throw new CommandRefused(texts.off_unconfirmed(kindOf(key), reason));
  }

  /** Sends the pending Offs, also from before a restart, but not those of commands in progress. */
  async settle(): Promise<void> {
    await this.#parts.owed.settle(async (key) => this.off(key));
  }

  /** Resolves when no command is under way; their signals have aborted. */
  async idle(): Promise<void> {
    await this.#parts.owed.idle();
  }

  /** A later On of the same switch replaces the earlier time. */
  async #hold(key: SwitchKey, max_ms: number): Promise<void> {
    const { owed, stopping } = this.#parts;
    const hold = new AbortController();
    this.#holds.get(key)?.abort();
    this.#holds.set(key, hold);
    await owed.during(key, async () => {
      await sleep(max_ms, AbortSignal.any([hold.signal, stopping]));
      if (this.#holds.get(key) === hold) await this.#off(key);
    });
  }
}

export interface SwitchControls {
  readonly switches: Switches;
  readonly channel: number;
  /** Aborts when the driver stops. */
  readonly signal: AbortSignal;
}

export function switchCommand(kind: SwitchKind, { switches, channel, signal }: SwitchControls): Command {
  const { max_s, default_s } = durations[kind];
  const key: SwitchKey = `${kind} ${channel}`;
  return defineCommand({
    name: kind,
    description: `${about[kind]} for a limited time, or switches it off; completed once the camera has accepted it.`,
    risk_level: kind === 'siren' ? 'medium' : 'low',
    requires_approval: false,
    // Off replaces an earlier On and never waits behind it.
    safety: ({ on }) => !on,
    timeout_ms: 2 * command_timeout_default_ms,
    input: z.strictObject({
      on: z.boolean(),
      duration_s: z
        .number()
        .min(1)
        .max(max_s)
        .default(default_s)
        .describe('seconds until it is switched off'),
    }),
    handle: async ({ on, duration_s }, context) => {
      if (!on) {
        await switches.off(key);
        return { on };
      }
      await switches.on(key, duration_s * 1_000, AbortSignal.any([context.signal, signal]));
      return { on, duration_s };
    },
  });
}

/** See the vendor's HTTP API guide, "AudioAlarmPlay" ("manul" is its word) and "SetWhiteLed". */
function orderOf(key: SwitchKey, isOn: boolean): Order {
  const channel = Number(key.slice(key.indexOf(' ') + 1));
  const state = isOn ? 1 : 0;
  if (kindOf(key) === 'light') {
    return { cmd: 'SetWhiteLed', action: 0, param: { WhiteLed: { channel, state } } };
  }
  const param = { channel, alarm_mode: 'manul', manual_switch: state };
  return { cmd: 'AudioAlarmPlay', action: 0, param };
}

function kindOf(key: SwitchKey): SwitchKind {
  return key.startsWith('siren') ? 'siren' : 'light';
}
