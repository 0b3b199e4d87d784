/** Commands of a dish: restart, stow, unstow. Each is sent once and completed when the dish itself shows its effect. */
import type { JsonObject } from '../../src/contract/json.ts';
import {
  type Command,
  type CommandContext,
  defineCommand,
  noInput,
} from '../../src/toolkit/driver/command.ts';
import { CommandRefused, DeviceUnreachable, notSent } from '../../src/platform/errors.ts';
import { sleep } from '../../src/platform/time.ts';
import type { DishStatus } from './api/messages.ts';
import type { Dish, DishOrder } from './dish.ts';
import type { StarlinkOptions } from './options.ts';
import { texts } from './texts.ts';
import { outage_stowed } from './words.ts';

/** A dish starts in two to five minutes, with a new firmware in ten. */
const restart_timeout_ms = 900_000;
/** The motors need a minute. */
const stow_timeout_ms = 180_000;
const look_ms = 250;

/** The dish as the driver sees it; outlives a run, so that a command also survives the loss that it causes. */
export interface DishContact {
  /** Undefined while the dish is not reached. */
  dish: Dish | undefined;
  /** The newest status, and when it was read (monotonic). */
  status: DishStatus | undefined;
  read_ms: number;
}

/** The names end with the link, since two dishes serve one gateway. */
export function dishCommands({ commands, link }: StarlinkOptions, contact: DishContact): readonly Command[] {
  const suffix = link.toLowerCase().replaceAll(/[^a-z0-9]+/gu, '_');
  return commands.map((order) =>
    defineCommand({
      name: `${order}_dish_${suffix}`,
      description: texts.orders[order](link),
      risk_level: 'high',
      timeout_ms: order === 'reboot' ? restart_timeout_ms : stow_timeout_ms,
      input: noInput,
      handle: async (_input, context) => carryOut(order, contact, context),
    }),
  );
}

async function carryOut(
  order: DishOrder,
  contact: DishContact,
  context: CommandContext,
): Promise<JsonObject> {
  const { dish, status: before } = contact;
  if (!dish || !before) throw new CommandRefused(notSent(texts.dish_absent));
  if (order === 'reboot' && before.uptime_s === undefined) throw new CommandRefused(notSent(texts.no_uptime));
  const begin_ms = performance.now();
  // A lost answer counts as accepted: a dish that goes down at once cannot answer. What follows decides.
  const refusal = await dish.order(order).catch((error: unknown) => {
    if (error instanceof DeviceUnreachable) return undefined;
    throw error;
  });
  if (refusal !== undefined) throw new CommandRefused(notSent(texts.order_refused(refusal)));
  context.progress(texts.order_accepted);
  while (!context.signal.aborted) {
    const { status, read_ms } = contact;
    // A status from before the order is no evidence.
    if (status && status !== before && isSeen(order, status, read_ms - begin_ms)) {
      return { after_s: Math.round((performance.now() - begin_ms) / 1_000) };
    }
    await sleep(look_ms, context.signal);
  }
  throw new CommandRefused(texts.effect_not_seen[order]);
}

/** `since_ms`: from the order to the status. A dish that is up for a shorter time has restarted. */
function isSeen(order: DishOrder, { uptime_s, outage }: DishStatus, since_ms: number): boolean {
  if (order === 'reboot') return uptime_s !== undefined && uptime_s * 1_000 < since_ms;
  return (outage === outage_stowed) === (order === 'stow');
}
