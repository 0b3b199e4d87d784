/** Reads what a vehicle has stored. It changes nothing on the vehicle. */
import { CommandRefused } from '../../../src/platform/errors.ts';
import { report_reserve_ms } from '../commands/exchange.ts';
import type { MissionItem } from './item.ts';
import type { MissionKind } from '../vehicles/mission-kinds.ts';
import { texts } from './texts.ts';
import { items_max, Transfer, TransferCut, TransferRefused, type TransferTask } from './transfer.ts';
import { type Addressee, isHeard } from '../vehicles/addressee.ts';

const progress_every = 10;
const attempts_max = 8;
/** The vehicle has fewer items than it had. */
const ack_sequence = 13;
/** A vehicle that was lost is back after this time, or the task ends without it. */
const back_max_ms = 30_000;
/** A boot that is later by less is the same: messages take time. */
const boot_tolerance_ms = 1_000;

/** Share of the whole task that the transfer takes, in percent. */
interface Share {
  readonly from_pct: number;
  readonly to_pct: number;
}

/** Resolves with the items in their order; throws `CommandRefused` if not all of them could be read. */
export async function download(
  to: Addressee,
  kind: MissionKind,
  task: TransferTask,
  { from_pct, to_pct }: Share = { from_pct: 0, to_pct: 100 },
): Promise<readonly MissionItem[]> {
  for (let attempt = 1; ; attempt += 1) {
    const transfer = new Transfer(to, kind, task);
    try {
      const items = await readAll(transfer, { from_pct, to_pct });
      if (items !== 'changed') return items;
      if (attempt === attempts_max) throw new CommandRefused(texts.changing(to.name, kind));
    } catch (error) {
      // Another station changes it or has changed it, or messages have arrived in another order.
      const isCut =
        error instanceof TransferRefused && (transfer.isOther(error.type) || error.type === ack_sequence);
      if (!isCut || attempt === attempts_max) throw error;
    }
  }
}

/**
 * Reads it again from the start when the vehicle was silent for a while, and then is addressed in another way, or knows nothing of
 * the transfer any more. A restart of the vehicle ends it.
 */
export async function downloadAgain(
  to: Addressee,
  address: () => Addressee | undefined,
  kind: MissionKind,
  task: TransferTask,
): Promise<readonly MissionItem[]> {
  const { booted_at_ms } = to.contact;
  let from = to;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await download(from, kind, task);
    } catch (error) {
      if (!(error instanceof TransferCut) || attempt === attempts_max) throw error;
      const back = await awaitReturn(from, address, task);
      if (!back || hasRestarted(booted_at_ms, back.contact.booted_at_ms)) throw error;
      from = back;
    }
  }
}

/** Resolves with the vehicle when it is received again, else with undefined. */
async function awaitReturn(
  { changes }: Addressee,
  address: () => Addressee | undefined,
  { remaining_ms, signal }: TransferTask,
): Promise<Addressee | undefined> {
  const look = (): Addressee | undefined => {
    const found = address();
    return found && isHeard(found.contact) && found.contact.booted_at_ms !== undefined ? found : undefined;
  };
  return changes.until(look, Math.min(back_max_ms, Math.max(0, remaining_ms() - report_reserve_ms)), signal);
}

function hasRestarted(before_ms: number | undefined, now_ms: number | undefined): boolean {
  return before_ms === undefined || now_ms === undefined || now_ms - before_ms > boot_tolerance_ms;
}

/** `changed`: another station has replaced it meanwhile, so that the items may be of both. An ArduPilot has no id that shows it. */
async function readAll(
  transfer: Transfer,
  { from_pct, to_pct }: Share,
): Promise<readonly MissionItem[] | 'changed'> {
  const { to, kind } = transfer;
  const { count, opaque_id } = await transfer.count();
  if (count > items_max) throw new CommandRefused(texts.too_long(to.name, kind, { count, max: items_max }));
  const items: MissionItem[] = [];
  for (let seq = 0; seq < count; seq += 1) {
    items.push(await transfer.item(seq));
    if (items.length % progress_every === 0) {
      const pct = from_pct + ((to_pct - from_pct) * items.length) / count;
      transfer.progress(texts.reading(to.name, items.length, count), pct);
    }
  }
  const after = opaque_id === 0 ? { count, opaque_id } : await transfer.count();
  transfer.end('complete');
  return after.count === count && after.opaque_id === opaque_id ? items : 'changed';
}
