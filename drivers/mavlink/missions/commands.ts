/** Commands of a vehicle that read and change what it has stored: missions, fences and rally points. */
import { z } from 'zod';
import { json, type JsonObject } from '../../../src/contract/json.ts';
import { type Command, type CommandContext, defineCommand } from '../../../src/toolkit/driver/command.ts';
import { CommandRefused } from '../../../src/platform/errors.ts';
import { admit, type Bounded, notSent, reach } from '../commands/admission.ts';
import { report_reserve_ms } from '../commands/exchange.ts';
import { texts as command_texts } from '../commands/texts.ts';
import { type Situation, situationOf } from '../vehicles/situation.ts';
import { checkPlan, type Limits } from './check-plan.ts';
import { digestOf } from './compare.ts';
import { downloadAgain } from './download.ts';
import { enforcementOf } from './fence.ts';
import type { MissionItem, PlannedItem } from './item.ts';
import { isSupported, mission_kinds, type MissionKind, ownItems } from '../vehicles/mission-kinds.ts';
import { obstacleToContinue, obstacleToPlan, obstacleUnderway } from './obstacles.ts';
import { planOf, readPlan } from './plan.ts';
import { clearItems, type Stored, storeItems, type Storing } from './store.ts';
import { texts } from './texts.ts';
import type { Addressee } from '../vehicles/addressee.ts';

/** 700 items at 20 % loss, or a long mission over a slow radio. */
const download_timeout_ms = 120_000;
/** Sending and reading back. */
const upload_timeout_ms = 300_000;
const clear_timeout_ms = 60_000;
const not_kept_max = 20;
/** It is requested after a start, and ArduPilot sends it every five seconds. */
const home_wait_ms = 12_000;

const kind = z
  .enum(mission_kinds)
  .default('mission')
  .describe('what the vehicle stores: its mission, its fence or its rally points')
  .meta({ title: 'Kind' });
const allow_airborne = z
  .boolean()
  .default(false)
  .describe('also while the vehicle is airborne or on its mission')
  .meta({ title: 'Allow while airborne' });

export function storageCommands(vehicle: Bounded, limits: Limits): readonly Command[] {
  return [downloadCommand(vehicle), uploadCommand(vehicle, limits), clearCommand(vehicle)];
}

function downloadCommand(vehicle: Bounded): Command {
  return defineCommand({
    name: 'download_mission',
    description:
      'Read the mission, the fence or the rally points of the vehicle, as a plan of QGroundControl. Changes nothing on the vehicle.',
    risk_level: 'low',
    requires_approval: false,
    repeatable: true,
    timeout_ms: download_timeout_ms,
    input: z.strictObject({ kind }),
    handle: async (input, context) => {
      const { to, situation } = reach(vehicle, context);
      requireSupport(to, input.kind);
      const items = await downloadAgain(to, addressOf(vehicle), input.kind, context);
      const { autopilot, home } = situation;
      const vehicle_type = to.contact.mav_type;
      const planWith = (at: Situation['home']): ReturnType<typeof planOf> =>
        planOf(input.kind, items, { autopilot, home: at, vehicle_type });
      const first = planWith(home);
      const plan = first === 'no home' ? planWith(await homeOf(to, context)) : first;
      if (plan === 'no home')
        throw new CommandRefused(command_texts.about(to.name, command_texts.home_unknown));
      if (plan === 'incomplete') throw new CommandRefused(texts.incomplete_fence(to.name));
      return { ...remember(vehicle, situation, { kind: input.kind, items }), plan };
    },
  });
}

/** A vehicle that was received only just now may not have reported its home yet. */
async function homeOf(to: Addressee, context: CommandContext): Promise<Situation['home']> {
  const time_ms = Math.min(home_wait_ms, Math.max(0, context.remaining_ms() - report_reserve_ms));
  const look = (): Situation['home'] => situationOf(to.contact, performance.now()).home;
  return to.changes.until(look, time_ms, context.signal);
}

function uploadCommand(vehicle: Bounded, limits: Limits): Command {
  const plan = z
    .record(z.string(), json)
    .describe('a plan of QGroundControl: the content of a .plan file with simple items')
    .meta({ title: 'Plan' });
  return defineCommand({
    name: 'upload_mission',
    description:
      'Replace the mission, the fence or the rally points of the vehicle by those of a plan. Each item is checked against the local limits first; what was stored is read back and compared.',
    risk_level: 'high',
    requires_approval: true,
    timeout_ms: upload_timeout_ms,
    input: z.strictObject({ kind, plan, allow_airborne }),
    handle: async (input, context) => upload(vehicle, input, { limits, context }),
  });
}

interface UploadInput {
  readonly kind: MissionKind;
  readonly plan: JsonObject;
  readonly allow_airborne: boolean;
}

async function upload(
  vehicle: Bounded,
  input: UploadInput,
  { limits, context }: { readonly limits: Limits; readonly context: CommandContext },
): Promise<JsonObject> {
  const obstacleOf = (now: Situation): string | undefined =>
    obstacleToPlan(now) ?? (input.allow_airborne ? undefined : obstacleUnderway(now));
  const { to, situation } = await admit(vehicle, context, obstacleOf);
  requireSupport(to, input.kind);
  const read = readPlan(input.plan, input.kind, situation.autopilot);
  if ('fault' in read) throw notSent(read.fault);
  const fault = checkPlan(input.kind, read.items, situation, limits);
  if (fault !== undefined) throw notSent(fault);
  vehicle.stored.forget(input.kind);
  const storing = storingOf(vehicle, to, { ...input, context, situation });
  const stored = await storeItems(to, read.items, storing);
  return {
    ...remember(vehicle, situation, { kind: input.kind, items: stored.items }),
    acknowledged: stored.acknowledged,
    ...(input.kind === 'fence' ? await enforcementOf(to, context) : {}),
    ...notKept(stored, read.items, ownItems(input.kind, situation.autopilot)),
    ...(read.others.length > 0 ? { not_uploaded: [...read.others] } : {}),
  };
}

function clearCommand(vehicle: Bounded): Command {
  return defineCommand({
    name: 'clear_mission',
    description: 'Remove the mission, the fence or the rally points from the vehicle.',
    risk_level: 'high',
    requires_approval: true,
    timeout_ms: clear_timeout_ms,
    input: z.strictObject({ kind, allow_airborne }),
    handle: async (input, context) => {
      const obstacleOf = (now: Situation): string | undefined =>
        input.allow_airborne ? undefined : obstacleUnderway(now);
      const { to, situation } = await admit(vehicle, context, obstacleOf);
      requireSupport(to, input.kind);
      vehicle.stored.forget(input.kind);
      const storing = storingOf(vehicle, to, { ...input, context, situation });
      const { acknowledged } = await clearItems(to, storing);
      return { ...remember(vehicle, situation, { kind: input.kind, items: [] }), acknowledged };
    },
  });
}

interface Doing {
  readonly kind: MissionKind;
  readonly context: CommandContext;
  readonly situation: Situation;
  readonly allow_airborne: boolean;
}

function storingOf(
  vehicle: Bounded,
  to: Addressee,
  { kind: of, context, situation, allow_airborne }: Doing,
): Storing {
  return {
    kind: of,
    context,
    situation,
    address: addressOf(vehicle),
    obstacle: () => {
      if (allow_airborne) return undefined;
      const obstacle = obstacleToContinue(situationOf(to.contact, performance.now()));
      return obstacle === undefined ? undefined : command_texts.about(to.name, obstacle);
    },
  };
}

/** How the vehicle is addressed now. */
function addressOf(vehicle: Bounded): () => Addressee | undefined {
  return () => {
    const found = vehicle.address();
    return 'to' in found ? found.to : undefined;
  };
}

/** MAVLink 1 transfers missions only. Vehicles that list their capabilities without this one would not answer. */
function requireSupport(to: Addressee, of: MissionKind): void {
  if (of !== 'mission' && to.contact.version === 1)
    throw notSent(command_texts.about(to.name, command_texts.needs_mavlink2(texts.the_transfer(of))));
  const version = to.contact.latest.last('AUTOPILOT_VERSION');
  if (version && version.capabilities !== 0 && !isSupported(of, version.capabilities))
    throw notSent(texts.unsupported(to.name, of));
}

function remember(
  { stored }: Bounded,
  { autopilot }: Situation,
  { kind: of, items }: { readonly kind: MissionKind; readonly items: readonly MissionItem[] },
): { readonly kind: MissionKind; readonly items: number; readonly digest: string } {
  const count = Math.max(0, items.length - ownItems(of, autopilot));
  const digest = digestOf(of, autopilot, items);
  stored.remember(of, { count, digest, items }, performance.now());
  return { kind: of, items: count, digest };
}

/** Parameters that the autopilot does not keep, and that do not change where it flies. */
function notKept(
  { comparison }: Stored,
  planned: readonly PlannedItem[],
  own: number,
): { readonly not_kept?: string[] } {
  const lost = comparison.not_kept.slice(0, not_kept_max);
  const not_kept = lost.map((each) => texts.differs(planned[each.index - own]?.path ?? '', each));
  return not_kept.length === 0 ? {} : { not_kept };
}
