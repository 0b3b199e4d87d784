/** Reads what a vehicle has stored. It changes nothing on the vehicle. */
import { CommandRefused } from '../../../src/errors.ts';
import type { Addressee } from '../commands/exchange.ts';
import type { MissionItem } from './item.ts';
import type { MissionKind } from './kinds.ts';
import { texts } from './texts.ts';
import { items_max, Transfer, TransferRefused, type TransferTask } from './transfer.ts';

const progress_every = 10;
const attempts_max = 3;

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
      return await readAll(transfer, { from_pct, to_pct });
    } catch (error) {
      // Another station has begun to change it, or requests have arrived in another order.
      const isCut = error instanceof TransferRefused && transfer.isBusy(error.type);
      if (!isCut || attempt === attempts_max) throw error;
    }
  }
}

async function readAll(transfer: Transfer, { from_pct, to_pct }: Share): Promise<readonly MissionItem[]> {
  const { to, kind } = transfer;
  const count = await transfer.count();
  if (count > items_max) throw new CommandRefused(texts.too_long(to.name, kind, { count, max: items_max }));
  const items: MissionItem[] = [];
  for (let seq = 0; seq < count; seq += 1) {
    items.push(await transfer.item(seq));
    if (items.length % progress_every === 0) {
      const pct = from_pct + ((to_pct - from_pct) * items.length) / count;
      transfer.progress(texts.reading(to.name, items.length, count), pct);
    }
  }
  transfer.end('complete');
  return items;
}
