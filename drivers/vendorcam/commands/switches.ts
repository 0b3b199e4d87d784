/** Sirens and lights: switched on for a limited time, and every On requires an Off, which is kept on disk until it was confirmed. */
import { z } from 'zod';
import {
  type Command,
  command_timeout_default_ms,
  defineCommand,
} from '../../../src/toolkit/driver/command.ts';
import { sleep } from '../../../src/platform/time.ts';
import type { Command as Order } from '../host/replies.ts';
import { EndedOrders, type EndedOrdersParts } from './ended-orders.ts';
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

interface SwitchParts extends Omit<EndedOrdersParts<SwitchKey>, 'endOf' | 'unconfirmed' | 'sent'> {
  /** Aborts when the driver stops: everything is switched off. */
  readonly stopping: AbortSignal;
}

export class Switches extends EndedOrders<SwitchKey> {
  readonly #stopping: AbortSignal;
  /** Ends the time of what is on now. */
  readonly #holds = new Map<SwitchKey, AbortController>();

  constructor({ stopping, ...parts }: SwitchParts) {
    super({
      ...parts,
      endOf: (key) => orderOf(key, false),
      unconfirmed: (key, reason) => texts.off_unconfirmed(kindOf(key), reason),
      sent: texts.off_sent,
    });
    this.#stopping = stopping;
  }

  /** Switches on, and off again after this time. Resolves when the camera has accepted the On. */
  async on(key: SwitchKey, max_ms: number, signal: AbortSignal): Promise<void> {
    await this.during(key, async () => {
      await this.begin(key, orderOf(key, true), { signal }, this.#holds.has(key));
      // A failed Off is owed, and sent again when the camera answers.
      this.#hold(key, max_ms).catch(() => undefined);
    });
  }

  /** Rejects with CommandRefused when the camera confirms no Off. */
  async off(key: SwitchKey): Promise<void> {
    await this.during(key, async () => this.end(key));
  }

  override async end(key: SwitchKey): Promise<void> {
    this.#holds.get(key)?.abort();
    this.#holds.delete(key);
    await super.end(key);
  }

  /** A later On of the same switch replaces the earlier time. */
  async #hold(key: SwitchKey, max_ms: number): Promise<void> {
    const hold = new AbortController();
    this.#holds.get(key)?.abort();
    this.#holds.set(key, hold);
    await this.during(key, async () => {
      await sleep(max_ms, AbortSignal.any([hold.signal, this.#stopping]));
      if (this.#holds.get(key) === hold) await this.end(key);
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
