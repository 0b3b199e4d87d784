/** Stops a vehicle where it is, for every command that does so. */
import type { JsonObject } from '../../../src/contract/json.ts';
import type { CommandContext } from '../../../src/driver/command.ts';
import { holdNumbers } from '../vehicles/modes.ts';
import type { Situation } from '../vehicles/situation.ts';
import { notSent } from './admission.ts';
import { type Addressee, carryOut } from './exchange.ts';
import { modeOf, modeOrder, px4HoldOrder } from './orders.ts';
import { texts } from './texts.ts';

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
  const { autopilot, kind, vtol_flight } = situation;
  const numbers = holdNumbers(autopilot, kind, vtol_flight);
  if (!numbers) throw notSent(texts.mode_unsupported(to.name, 'hold'));
  const order = autopilot === 'px4' ? px4HoldOrder(numbers) : modeOrder('hold', numbers, situation);
  const evidence = await carryOut(to, { ...order, what }, context);
  return { flight_mode: modeOf(to.contact), ...evidence };
}
