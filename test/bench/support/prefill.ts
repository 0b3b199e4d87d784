/** Fills a buffer file as a long outage would have, through the store itself but without the outbox before it. */
import { laneRules } from '../../../src/contract/lanes.ts';
import { vouched, systemClock } from '../../../src/platform/clock.ts';
import { rowId, type Row } from '../../../src/kit/outbox/row.ts';
import { startStore } from '../../../src/kit/outbox/live/store-client.ts';
import { channelOf, roomy_limits } from '../../support/kit/connector.ts';
import { flight, stamped } from '../../support/gps.ts';
import { work } from '../../support/disk/store-lab.ts';

const commit_rows = 5_000;
/** Four drones at 5 Hz. */
const every_ms = 50;
const jitter_ms = 9;
const lane = 'feed';

/** Writes `rows` messages, which carry no time of sending, and answers their epoch. */
export async function fillBuffer(file: string, rows: number): Promise<number> {
  if (laneRules[lane].durability !== 'lazy') throw new Error('the fill must be telemetry');
  const { client, opened } = await startStore({
    file,
    limits: roomy_limits,
    boot_id: systemClock({ evidence: vouched }).boot_id,
  });
  const begin_ms = Date.now() - rows * every_ms;
  const data = flight();
  const rowOf = (seq: number): Row => ({
    id: rowId({ epoch: opened.epoch, seq }),
    lane,
    channel: channelOf(lane, seq),
    time_ms: begin_ms + seq * every_ms + ((seq * 7) % jitter_ms),
    mono_ms: null,
    body: JSON.stringify(stamped(data.next().value, 0)),
  });
  for (let from = 1; from <= rows; from += commit_rows) {
    const count = Math.min(commit_rows, rows - from + 1);
    await client.commit(work({ rows: Array.from({ length: count }, (_, offset) => rowOf(from + offset)) }));
  }
  await client.close();
  return opened.epoch;
}
