/** Commands that start, pause and resume the mission that a vehicle has stored. */
import { z } from 'zod';
import type { JsonObject } from '../../../src/contract/json.ts';
import {
  type Command,
  type CommandContext,
  defineCommand,
  noInput,
} from '../../../src/toolkit/driver/command.ts';
import { CommandRefused } from '../../../src/platform/errors.ts';
import { latitude, longitude } from '../../../src/contract/assets.ts';
import { admit, begunNow, type Bounded, notSent } from '../commands/admission.ts';
import { altitudeInput } from '../commands/altitude.ts';
import { arrivalTimeout_ms } from '../commands/arrival.ts';
import { changeMode, hold } from '../commands/change-mode.ts';
import { goTo } from '../commands/commands.ts';
import { missionOrder } from '../commands/orders.ts';
import { texts as command_texts } from '../commands/texts.ts';
import type { MavlinkOptions } from '../options.ts';
import type { Kind } from '../reports/kind.ts';
import { modeNumbers } from '../vehicles/modes.ts';
import type { Situation } from '../vehicles/situation.ts';
import { digestOf } from './compare.ts';
import { download } from './download.ts';
import { itemNumber, ownItems } from '../vehicles/mission-kinds.ts';
import { obstacleToPause, obstacleToReposition, obstacleToStart } from './obstacles.ts';
import { texts } from './texts.ts';
import { Transfer } from './transfer.ts';
import type { Addressee } from '../vehicles/addressee.ts';

/** Counting the items, or reading them for their digest, and going to the first one precede the change of the mode. */
const start_timeout_ms = 120_000;
const digest_chars = 64;
const set_current_tries = 4;
const set_current_wait_ms = 1_000;

export function missionFlightCommands(
  vehicle: Bounded,
  options: MavlinkOptions,
  kind: Kind,
): readonly Command[] {
  const digest = z
    .string()
    .length(digest_chars)
    .optional()
    .describe('start only the mission with this digest, as upload_mission returned it')
    .meta({ title: 'Digest' });
  const start_mission = defineCommand({
    name: 'start_mission',
    description:
      'Start the stored mission at its first item. The vehicle must be armed; a mission that begins on the ground takes off.',
    risk_level: 'high',
    requires_approval: true,
    timeout_ms: start_timeout_ms,
    input: z.strictObject({ digest }),
    handle: async (input, context) => begin(vehicle, { context, digest: input.digest, from: 'first' }),
  });
  const resume_mission = defineCommand({
    name: 'resume_mission',
    description: 'Continue the stored mission at its current item. The vehicle must be armed.',
    risk_level: 'high',
    requires_approval: true,
    timeout_ms: start_timeout_ms,
    input: z.strictObject({ digest }),
    handle: async (input, context) => begin(vehicle, { context, digest: input.digest, from: 'current' }),
  });
  return [start_mission, pauseCommand(vehicle), resume_mission, repositionCommand(vehicle, options, kind)];
}

function repositionCommand(vehicle: Bounded, options: MavlinkOptions, kind: Kind): Command {
  const alt_m = altitudeInput(options.goto, kind);
  const resume = z
    .boolean()
    .default(true)
    .describe('continue the mission on arrival; otherwise hold there')
    .meta({ title: 'Resume the mission' });
  return defineCommand({
    name: 'reposition',
    description:
      'Leave the mission for a point, and continue it from there at its current item. The vehicle must be on its mission. Completed when it is on its mission again.',
    risk_level: 'high',
    requires_approval: true,
    timeout_ms: arrivalTimeout_ms(options.goto),
    input: z.strictObject({ lat: latitude, lon: longitude, alt_m, resume }),
    handle: async ({ resume: continues, ...target }, task) => {
      const context = begunNow(task);
      await admit(vehicle, context, obstacleToReposition);
      const flown = await goTo(vehicle, { ...target, wait_for_arrival: true }, { options, context });
      if (!continues) return flown;
      return { ...flown, ...(await begin(vehicle, { context, digest: undefined, from: 'current' })) };
    },
  });
}

function pauseCommand(vehicle: Bounded): Command {
  return defineCommand({
    name: 'pause_mission',
    description:
      'Stop on the way and hold there, as `hold` does; resume_mission continues. Pre-empts other commands.',
    risk_level: 'medium',
    requires_approval: false,
    input: noInput,
    handle: async (_input, context) =>
      hold('pause_mission', await admit(vehicle, context, obstacleToPause), context),
  });
}

interface Beginning {
  readonly context: CommandContext;
  readonly digest: string | undefined;
  readonly from: 'current' | 'first';
}

async function begin(vehicle: Bounded, beginning: Beginning): Promise<JsonObject> {
  const { digest, from } = beginning;
  // Reading a long mission takes a while.
  const context = begunNow(beginning.context);
  const first = await admit(vehicle, context, obstacleToStart);
  const own = ownItems('mission', first.situation.autopilot);
  // Asked now: another station may have changed or cleared it, over a link that does not show it.
  const count =
    digest === undefined
      ? (await new Transfer(first.to, 'mission', context).count()).count - own
      : await readExpected(vehicle, first, { context, digest });
  if (count < 1) throw notSent(command_texts.about(first.to.name, texts.no_mission));
  if (from === 'first') await goToItem(vehicle, first.to, { seq: own, context });
  // That took time: everything is checked again before the vehicle moves.
  const { to, situation } = await admit(vehicle, context, obstacleToStart);
  requireDigest(vehicle, to, digest);
  const numbers = modeNumbers(situation.autopilot, situation.kind, 'AUTO');
  if (!numbers) throw notSent(command_texts.mode_unsupported(to.name, 'AUTO'));
  const what = from === 'first' ? 'start_mission' : 'resume_mission';
  const changed = await changeMode(to, missionOrder(what, numbers, situation), context);
  return { ...changed, items: count, ...itemOf(to, situation) };
}

/** Returns the number of items of the mission with this digest; throws `CommandRefused` for any other one. */
async function readExpected(
  vehicle: Bounded,
  { to, situation }: { readonly to: Addressee; readonly situation: Situation },
  { context, digest }: { readonly context: CommandContext; readonly digest: string },
): Promise<number> {
  const items = await download(to, 'mission', context);
  const { autopilot } = situation;
  const count = Math.max(0, items.length - ownItems('mission', autopilot));
  const read = { count, digest: digestOf('mission', autopilot, items), items };
  vehicle.stored.remember('mission', read, performance.now());
  requireDigest(vehicle, to, digest);
  return count;
}

function requireDigest({ stored }: Bounded, to: Addressee, digest: string | undefined): void {
  if (digest === undefined || stored.digest('mission') === digest) return;
  const reason = stored.digest('mission') === undefined ? texts.digest_unknown : texts.digest_differs;
  throw notSent(command_texts.about(to.name, reason));
}

/** Makes an item the current one: a vehicle that is not on its mission does not move for it. */
async function goToItem(
  vehicle: Bounded,
  to: Addressee,
  { seq, context }: { readonly seq: number; readonly context: CommandContext },
): Promise<void> {
  const since_ms = performance.now();
  for (let tries = 0; tries < set_current_tries; tries += 1) {
    // A vehicle that a pilot has put on its mission meanwhile would go back to its first item.
    await admit(vehicle, context, obstacleToStart);
    to.contact.send('MISSION_SET_CURRENT', { ...to.contact.target, seq });
    const wait_ms = Math.max(0, Math.min(set_current_wait_ms, context.remaining_ms()));
    const look = (): true | undefined =>
      to.contact.latest.since('MISSION_CURRENT', since_ms)?.seq === seq || undefined;
    if (await to.changes.until(look, wait_ms, context.signal)) return;
    if (context.signal.aborted) break;
  }
  to.contact.discardUnsent(performance.now());
  if (context.signal.aborted) throw new CommandRefused(texts.stopped(to.name));
  throw notSent(texts.item_not_set(to.name, 1));
}

/** The item that the vehicle flies to, from 1. */
function itemOf(to: Addressee, { autopilot }: Situation): { readonly item?: number } {
  const current = to.contact.latest.last('MISSION_CURRENT');
  return current ? { item: itemNumber(current.seq, autopilot) } : {};
}
