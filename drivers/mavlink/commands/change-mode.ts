/** Changes the mode of a vehicle, or stops it where it is, for every command that does so. */
import type { JsonObject } from '../../../src/contract/json.ts';
import type { CommandContext } from '../../../src/toolkit/driver/command.ts';
import { holdMode } from '../vehicles/modes.ts';
import type { Situation } from '../vehicles/situation.ts';
import { notSent } from './admission.ts';
import { carryOutOver } from './exchange.ts';
import { modeOf, modeOrder, px4HoldOrder } from './orders.ts';
import { texts } from './texts.ts';
import type { Addressee } from '../vehicles/addressee.ts';
import type { Order } from './ways.ts';

/** Resolves with the mode that the vehicle shows then, over the link that showed the effect. */
export async function changeMode(to: Addressee, order: Order, context: CommandContext): Promise<JsonObject> {
  const { evidence, contact } = await carryOutOver(to, order, context);
  return { flight_mode: modeOf(contact), ...evidence };
}

interface Admitted {
  readonly to: Addressee;
  readonly situation: Situation;
}

/** Resolves when the vehicle holds. `what`: the command as the interface names it. */
export async function hold(
  what: string,
  { to, situation }: Admitted,
  context: CommandContext,
): Promise<JsonObject> {
  const mode = holdMode(situation);
  if (!mode) throw notSent(texts.mode_unsupported(to.name, 'hold'));
  const { numbers, caveat } = mode;
  const order = situation.autopilot === 'px4' ? px4HoldOrder(numbers) : modeOrder('hold', numbers, situation);
  const held = await changeMode(to, { ...order, what }, context);
  return caveat === undefined ? held : { ...held, warning: texts.hold_caveats[caveat] };
}
