/**
 * Restarts the machine through systemd-logind (org.freedesktop.login1). The connector ends with the machine, so the task is
 * concluded by its next run: the order is on the disk before it is sent, and another boot id than then is the effect.
 */
import { join } from 'node:path';
import type { JsonObject } from '../../src/contract/json.ts';
import { openBus, type Bus, type Reply } from '../../src/toolkit/device/dbus/bus.ts';
import { orderOnce } from '../../src/toolkit/device/dbus/order-once.ts';
import type { StateFile } from '../../src/toolkit/device/state-file.ts';
import { readTextSync } from '../../src/toolkit/device/system-files.ts';
import type { CommandContext } from '../../src/toolkit/driver/command.ts';
import { CommandRefused, messageOf, notSent } from '../../src/platform/errors.ts';
import { sleep } from '../../src/platform/time.ts';
import type { GatewayOptions } from './options.ts';
import { uptime_s } from './proc.ts';
import type { rebootOrder } from './reboot-order.ts';
import { texts } from './texts.ts';
import { readTextUpTo, small_bytes_max } from '../../src/platform/bounded-file.ts';

/** Stopping every service of a gateway takes less; systemd itself kills a service after 90 s. */
const restart_begins_max_ms = 120_000;
const answer_timeout_ms = 5_000;

const logind = {
  destination: 'org.freedesktop.login1',
  path: '/org/freedesktop/login1',
  interface: 'org.freedesktop.login1.Manager',
} as const;

export interface RebootParts {
  readonly options: Pick<GatewayOptions, 'bus' | 'roots'>;
  readonly order: StateFile<typeof rebootOrder>;
}

/**
 * Resolves after the restart with the uptime of the machine. Throws `CommandRefused`, with `command not sent` where
 * the machine was not asked to restart.
 */
export async function rebootGateway(
  { options, order }: RebootParts,
  context: CommandContext,
): Promise<JsonObject> {
  const boot_id = await bootId(options.roots);
  if (context.repeated) {
    const ordered = await order.read();
    await order.remove();
    // Nothing is ordered a second time, whatever became of the first.
    if (!ordered) throw new CommandRefused(texts.order_unknown);
    if (ordered.boot_id === boot_id) throw new CommandRefused(texts.not_restarted);
    return { uptime_s: uptime_s(readTextSync(join(options.roots.proc, 'uptime')) ?? '') };
  }
  const closing = new AbortController();
  try {
    const signal = AbortSignal.any([context.signal, closing.signal]);
    const bus = await connect(options.bus, signal);
    await demandPermission(bus);
    await order.write({ boot_id }).catch((error: unknown) => {
      throw new CommandRefused(notSent(texts.order_not_saved(messageOf(error))), { cause: error });
    });
    if (context.signal.aborted) throw new CommandRefused(notSent(texts.stopped_before_order));
    await sendOrder(bus).catch(async (error: unknown) => {
      await order.remove();
      throw error;
    });
    context.progress(texts.restarting);
    await sleep(restart_begins_max_ms, context.signal);
  } finally {
    closing.abort();
  }
  // A stop of the connector is the restart: the next run concludes. Whatever else ends this, no order is left to be concluded.
  if (!context.signal.aborted) await order.remove();
  throw new CommandRefused(context.signal.aborted ? texts.restart_ordered : texts.not_restarted);
}

async function connect(address: string, signal: AbortSignal): Promise<Bus> {
  return openBus({ address, timeout_ms: answer_timeout_ms, signal, onSignal: () => undefined }).catch(
    (error: unknown) => {
      throw new CommandRefused(notSent(messageOf(error)), { cause: error });
    },
  );
}

/** logind asks polkit; `challenge` is a question to a person, whom a service does not have. */
async function demandPermission(bus: Bus): Promise<void> {
  const reply = await bus.call({ ...logind, member: 'CanReboot' }).catch((error: unknown): Reply => {
    return { ok: false, reason: messageOf(error) };
  });
  if (!reply.ok) throw new CommandRefused(notSent(texts.logind_failed(reply.reason)));
  if (reply.value !== 'yes') throw new CommandRefused(notSent(texts.reboot_not_allowed(String(reply.value))));
}

async function sendOrder(bus: Bus): Promise<void> {
  const reply = await orderOnce(bus, { ...logind, member: 'Reboot', signature: 'b', body: [false] });
  if (!reply.ok) throw new CommandRefused(notSent(texts.logind_failed(reply.reason)));
}

async function bootId({ proc }: GatewayOptions['roots']): Promise<string> {
  const path = join(proc, 'sys/kernel/random/boot_id');
  return (
    await readTextUpTo(path, small_bytes_max).catch((error: unknown) => {
      throw new CommandRefused(notSent(texts.boot_unknown(path, messageOf(error))), { cause: error });
    })
  ).trim();
}
