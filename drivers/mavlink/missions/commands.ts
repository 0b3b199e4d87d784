/** Commands of a vehicle that read and change what it has stored: missions, fences and rally points. */
import { z } from 'zod';
import { json, type JsonObject } from '../../../src/contract/json.ts';
import { type Command, type CommandContext, defineCommand } from '../../../src/toolkit/driver/command.ts';
import { CommandRefused, messageOf } from '../../../src/platform/errors.ts';
import { admit, type Bounded, notSent, reach } from '../commands/admission.ts';
import { report_reserve_ms } from '../commands/exchange.ts';
import { texts as command_texts } from '../commands/texts.ts';
import { type Situation, situationOf } from '../vehicles/situation.ts';
import { checkPlan, type Limits } from './check-plan.ts';
import { compare, type Comparison, digestOf } from './compare.ts';
import { download, downloadAgain } from './download.ts';
import { enforcementOf } from './fence.ts';
import { command_waypoint, type MissionItem, type PlannedItem, type StoredItem } from './item.ts';
import { isSupported, mission_kinds, type MissionKind, ownItems } from '../vehicles/mission-kinds.ts';
import { obstacleToContinue, obstacleToPlan, obstacleUnderway } from './obstacles.ts';
import { planOf, readPlan } from './plan.ts';
import { texts } from './texts.ts';
import type { Addressee } from '../vehicles/addressee.ts';
import { sleep } from '../../../src/platform/time.ts';
import { ack_accepted, Transfer, TransferBusy } from './transfer.ts';
import { sendItems, type Sent } from './upload.ts';

/** Part of a task's time for the sending; the rest is for reading it back. */
const sending_share = 0.6;
/** A vehicle that restarts is back after this time, or the task ends without it. */
const read_back_max_ms = 30_000;
const read_back_pause_ms = 1_000;

interface Storing {
  readonly vehicle: Bounded;
  readonly to: Addressee;
  readonly kind: MissionKind;
  readonly context: CommandContext;
  readonly situation: Situation;
  readonly allow_airborne: boolean;
}

/** Why nothing more may be sent. */
function obstacleIn({ to, allow_airborne }: Storing): string | undefined {
  if (allow_airborne) return undefined;
  const obstacle = obstacleToContinue(situationOf(to.contact, performance.now()));
  return obstacle === undefined ? undefined : command_texts.about(to.name, obstacle);
}

interface Stored {
  readonly acknowledged: boolean;
  /** When the vehicle had all. */
  readonly sent_ms: number;
  /** As read back, with the vehicle's own ones. */
  readonly items: readonly MissionItem[];
  readonly comparison: Comparison;
}

/** Resolves when the vehicle holds the items as sent; otherwise throws `CommandRefused` with what it holds. */
async function storeItems(planned: readonly PlannedItem[], storing: Storing): Promise<Stored> {
  const { to, kind, context, situation } = storing;
  const obstacle = (): string | undefined => obstacleIn(storing);
  const own = ownItems(kind, situation.autopilot);
  const items = [...(own > 0 ? [homeItem(situation)] : []), ...planned.map(({ item }) => item)];
  const begun_ms = performance.now();
  const until_ms = begun_ms + context.remaining_ms() * sending_share;
  const sent = await sendItems(to, kind, items, { ...context, until_ms, obstacle });
  const sent_ms = performance.now();
  const all = planned.length;
  if (sent.is === 'busy') throw new CommandRefused(sent.reason);
  if (context.signal.aborted) throw new CommandRefused(stoppedText(to, sent, { own, all }));
  const held = await readBack(storing, sent.is === 'acknowledged' ? 'now' : 'when it is back');
  const failed = 'reason' in sent ? failure(sent, { own, all }) : undefined;
  if ('unread' in held) throw unread(to, held.unread, failed);
  const comparison = compare(items, held.items, own);
  // An ArduPilot that holds more has kept old items.
  if (comparison.same === items.length && held.items.length === items.length)
    return { acknowledged: sent.is === 'acknowledged', sent_ms, items: held.items, comparison };
  const other = to.contact.otherTransfer(begun_ms);
  const sentences = [
    failed,
    differenceIn(comparison, planned, own),
    ...(other === undefined ? [] : [texts.other_station(other)]),
  ].filter((each) => each !== undefined);
  const count = Math.max(0, held.items.length - own);
  const same = Math.max(0, comparison.same - own);
  throw new CommandRefused([...sentences, texts.holds(kind, { held: count, same, all })].join('; '));
}

function differenceIn(
  { differences: [first] }: Comparison,
  planned: readonly PlannedItem[],
  own: number,
): string | undefined {
  const path = first && planned[first.index - own]?.path;
  return first && path !== undefined ? texts.differs(path, first) : undefined;
}

function stoppedText(
  to: Addressee,
  sent: Sent,
  { own, all }: { readonly own: number; readonly all: number },
): string {
  const reason = 'reason' in sent ? sent.reason : texts.stopped(to.name);
  const done = { sent: Math.max(0, sent.sent - own), all };
  return command_texts.unknown_outcome(texts.ended_early(done, reason));
}

/** `failed`: what was known before. */
function unread(to: Addressee, reason: string, failed: string | undefined): CommandRefused {
  const sentence = texts.not_read_back(to.name, reason);
  return new CommandRefused(
    command_texts.unknown_outcome(failed === undefined ? sentence : `${failed}; ${sentence}`),
  );
}

function failure(
  sent: Extract<Sent, { readonly reason: string }>,
  { own, all }: { readonly own: number; readonly all: number },
): string {
  if (sent.is === 'refused') return sent.reason;
  return texts.ended_early({ sent: Math.max(0, sent.sent - own), all }, sent.reason);
}

/** Resolves when the vehicle holds nothing any more; otherwise throws `CommandRefused` with what it holds. */
async function clearItems(storing: Storing): Promise<{ readonly acknowledged: boolean }> {
  const { to, kind, context, situation } = storing;
  const refusal = await requestClearing(storing);
  if (context.signal.aborted) throw new CommandRefused(command_texts.unknown_outcome(texts.stopped(to.name)));
  const held = await readBack(storing, refusal === undefined ? 'now' : 'when it is back');
  if ('unread' in held) throw unread(to, held.unread, refusal);
  const left = held.items.length - ownItems(kind, situation.autopilot);
  if (left <= 0) return { acknowledged: refusal === undefined };
  const not_cleared = texts.not_cleared(to.name, kind, left);
  throw new CommandRefused(refusal === undefined ? not_cleared : `${refusal}; ${not_cleared}`);
}

/** Returns the reason without an acknowledgement. */
async function requestClearing(storing: Storing): Promise<string | undefined> {
  const { to, kind, context } = storing;
  const until_ms = performance.now() + context.remaining_ms() * sending_share;
  const transfer = new Transfer(to, kind, { ...context, until_ms });
  try {
    await transfer.begin(
      texts.the_clearing(kind),
      () => {
        const reason = obstacleIn(storing);
        if (reason !== undefined) throw new CommandRefused(reason);
        return to.contact.send('MISSION_CLEAR_ALL', transfer.target);
      },
      (since_ms) => transfer.received('MISSION_ACK', since_ms)?.type === ack_accepted || undefined,
    );
    return undefined;
  } catch (error) {
    if (error instanceof TransferBusy) throw error;
    transfer.abandon();
    return messageOf(error);
  }
}

/** Reads what the vehicle holds, again while there is time if it is not back yet. */
async function readBack(
  { vehicle, kind, context }: Storing,
  when: 'now' | 'when it is back',
): Promise<{ readonly items: readonly MissionItem[] } | { readonly unread: string }> {
  const until_ms = performance.now() + (when === 'now' ? context.remaining_ms() : read_back_max_ms);
  for (;;) {
    const to = addresseeOf(vehicle);
    let why: string = texts.away;
    if (to) {
      try {
        const task = { ...context, until_ms };
        return { items: await download(to, kind, task, { from_pct: 60, to_pct: 100 }) };
      } catch (error) {
        why = messageOf(error);
      }
    }
    const left_ms = Math.min(until_ms - performance.now(), context.remaining_ms());
    if (left_ms < 2 * read_back_pause_ms || context.signal.aborted) return { unread: why };
    await sleep(read_back_pause_ms, context.signal);
  }
}

/** Item 0 of an ArduPilot, which it replaces by the home that it has. */
function homeItem({ home }: Situation): StoredItem {
  const { lat = 0, lon = 0, alt_amsl_m = 0 } = home ?? {};
  const params = { param1: 0, param2: 0, param3: 0, param4: 0 };
  const place = { x: Math.round(lat * 1e7), y: Math.round(lon * 1e7), z: alt_amsl_m, frame: 0 };
  return { ...params, ...place, command: command_waypoint, autocontinue: 1 };
}

/** 700 items at 20 % loss, or a long mission over a slow radio. */
const download_timeout_ms = 120_000;
/** Sending and reading back. */
const upload_timeout_ms = 300_000;
const clear_timeout_ms = 60_000;
const not_kept_max = 20;
/** A vehicle checks what it has once it has all. */
const warnings_wait_ms = 1_000;
const warnings_max = 3;
const severity_warning = 4;
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
      const items = await downloadAgain(to, () => addresseeOf(vehicle), input.kind, context);
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
  const begun_ms = performance.now();
  const stored = await storeItems(read.items, { ...input, vehicle, to, context, situation });
  return {
    ...remember(vehicle, situation, { kind: input.kind, items: stored.items }),
    acknowledged: stored.acknowledged,
    ...(input.kind === 'fence' ? await enforcementOf(to, context, begun_ms) : {}),
    ...notKept(stored, read.items, ownItems(input.kind, situation.autopilot)),
    ...(read.others.length > 0 ? { not_uploaded: [...read.others] } : {}),
    ...(await warnings(to, { begun_ms, until_ms: stored.sent_ms + warnings_wait_ms }, context)),
  };
}

/** What the vehicle says of what it has accepted: it may not fly it. */
async function warnings(
  { contact, changes }: Addressee,
  { begun_ms, until_ms }: { readonly begun_ms: number; readonly until_ms: number },
  { remaining_ms, signal }: CommandContext,
): Promise<{ readonly vehicle_texts?: string[] }> {
  const wait_ms = Math.min(until_ms - performance.now(), remaining_ms() - report_reserve_ms);
  await changes.until(() => undefined, Math.max(0, wait_ms), signal);
  const told = contact.texts.filter(
    ({ text, at_ms }) => at_ms >= begun_ms && text.severity <= severity_warning,
  );
  const vehicle_texts = [...new Set(told.map(({ text }) => text.text))].slice(-warnings_max);
  return vehicle_texts.length === 0 ? {} : { vehicle_texts };
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
      const { acknowledged } = await clearItems({ ...input, vehicle, to, context, situation });
      return { ...remember(vehicle, situation, { kind: input.kind, items: [] }), acknowledged };
    },
  });
}

/** The vehicle as it is addressed now: it may have restarted, or changed its link. */
function addresseeOf(vehicle: Bounded): Addressee | undefined {
  const found = vehicle.address();
  return 'to' in found ? found.to : undefined;
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
