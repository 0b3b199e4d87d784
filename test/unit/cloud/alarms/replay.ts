/**
 * Thirty days of a fleet with outages, played against the store on an invented clock and compared with a reference that knows nothing of
 * messages: the alarms that must have opened and closed follow from what was so, and when.
 */
import { expect } from 'vitest';
import type { JsonObject } from '../../../../src/contract/json.ts';
import { channels } from '../../../../src/contract/topics.ts';
import { alarmStates } from '../../../../src/cloud/api/alarm-resources.ts';
import type { Database } from '../../../../src/cloud/sql/database.ts';
import { sqlStore } from '../../../../src/cloud/store/sql-store.ts';
import { samples } from '../../../support/contract-samples.ts';
import { calm, received, start_ms } from '../story.ts';

const minute_ms = 60_000;
const day_ms = 86_400_000;
const seed = Number(process.env['KIT_CONNECTOR_SEED'] ?? 36);

function randomOf(start: number): () => number {
  let state = start;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296;
    return state / 4_294_967_296;
  };
}

const uuid = (a: number, b: number): string =>
  `${String(a).padStart(8, '0')}-0000-4000-8000-${String(b).padStart(12, '0')}`;

/** Something that is so from one time to another. `thing`: which of its kind. */
interface Lasting {
  readonly what: 'offline' | 'link' | 'battery' | 'motion' | 'asset';
  readonly from_ms: number;
  readonly to_ms: number;
}

interface Sent {
  readonly arrives_ms: number;
  readonly said_ms: number;
  readonly channel: string;
  readonly data: JsonObject;
  readonly historical: boolean;
}

/** One thing after the other, so that no two overlap; a third of them while the kit is offline. */
function lifeOf(
  random: () => number,
  days: number,
): readonly { readonly outage: Lasting | undefined; readonly inside: readonly Lasting[] }[] {
  const life = [];
  const whats = ['link', 'battery', 'motion', 'asset'] as const;
  for (let at_ms = start_ms + 30 * minute_ms; at_ms < start_ms + days * day_ms;) {
    const isOutage = random() < 0.3;
    const begin_ms = at_ms;
    at_ms += 10 * minute_ms;
    const inside: Lasting[] = [];
    for (let n = Math.floor(random() * 4) + 1; n > 0; n -= 1) {
      const what = whats[Math.floor(random() * whats.length)] ?? 'link';
      const from_ms = at_ms;
      // Some come back within ten minutes, and count.
      at_ms += Math.round((1 + random() * 20) * minute_ms);
      inside.push({ what, from_ms, to_ms: at_ms });
      at_ms += Math.round((2 + random() * 16) * minute_ms);
    }
    at_ms += 10 * minute_ms;
    life.push({
      outage: isOutage ? ({ what: 'offline', from_ms: begin_ms, to_ms: at_ms } as const) : undefined,
      inside,
    });
    at_ms += Math.round((15 + random() * 240) * minute_ms);
  }
  return life;
}

/** What must have become of it: once for each time that it was so while the kit was online, together within ten minutes. */
function referenceOf(life: ReturnType<typeof lifeOf>): readonly string[] {
  const seen = life.flatMap(({ outage, inside }) => (outage ? [outage] : inside));
  const alarms: { what: string; since: number; closed: number; count: number }[] = [];
  for (const { what, from_ms, to_ms } of seen) {
    const last = alarms.findLast((alarm) => alarm.what === what);
    if (last && from_ms - last.closed <= 10 * minute_ms)
      Object.assign(last, { closed: to_ms, count: last.count + 1 });
    else alarms.push({ what, since: from_ms, closed: to_ms, count: 1 });
  }
  return alarms.map(({ what, since, closed, count }) => `${what} ${since} ${closed} ${count}`).sort();
}

/** What the kit sends of it. */
function messagesOf(kit: number, life: ReturnType<typeof lifeOf>, days: number): readonly Sent[] {
  const radio = uuid(kit, 1);
  const below = [2, 3, 4, 5, 6].map((n) => uuid(kit, n));
  const assets = [radio, ...below];
  const sent: Sent[] = [];
  const state = (online: boolean): JsonObject => ({
    ...calm,
    online,
    reason: online ? null : 'stopped',
  });
  const send = (said_ms: number, channel: string, data: JsonObject, late_ms?: number): void =>
    void sent.push({
      arrives_ms: late_ms ?? said_ms,
      said_ms,
      channel,
      data,
      historical: late_ms !== undefined,
    });
  send(start_ms, channels.state, state(true));
  for (const id of assets) {
    const about = { id, parent_id: id === radio ? null : radio, status: 'online' };
    send(start_ms, channels.asset(id), { ...samples['announcement'], ...about });
  }
  const tell = (what: Lasting['what'], isSo: boolean, at_ms: number, late_ms?: number): void => {
    const status = isSo ? 'offline' : 'online';
    if (what === 'link') send(at_ms, channels.telemetry, { wans: [{ name: 'eth3', status }] }, late_ms);
    if (what === 'battery')
      send(at_ms, channels.telemetry, { battery: isSo ? 15 : 90, battery_charging: false }, late_ms);
    if (what === 'motion') send(at_ms, channels.event(radio, 'motion'), { detected: isSo }, late_ms);
    if (what === 'asset')
      for (const id of assets)
        send(at_ms, channels.event(id, 'asset_status'), { status, reason: null }, late_ms);
  };
  for (const { outage, inside } of life) {
    if (outage) send(outage.from_ms, channels.state, state(false));
    if (outage) send(outage.to_ms, channels.state, state(true));
    inside.forEach(({ what, from_ms, to_ms }, n) => {
      // The backlog comes in several batches.
      const late_ms = outage && outage.to_ms + (n + 1) * 1_000;
      tell(what, true, from_ms, late_ms);
      tell(what, false, to_ms, late_ms && late_ms + 500);
    });
  }
  for (let at_ms = start_ms; at_ms < start_ms + (days + 1) * day_ms; at_ms += 30 * minute_ms) {
    const isAway = life.some(({ outage }) => outage && at_ms >= outage.from_ms && at_ms < outage.to_ms);
    if (!isAway) send(at_ms, channels.feed(radio, 'gps'), { lat: 47, lon: 8, alt_m: null });
  }
  return sent;
}

export interface Replay {
  readonly kits: number;
  readonly days: number;
}

/** Plays the fleet, and expects exactly the alarms of the reference. Returns how many there were. */
export async function replayFleet(database: Database, { kits, days }: Replay): Promise<number> {
  const store = sqlStore(database, { keepsHistory: false });
  const lives = Array.from({ length: kits }, (_, kit) => lifeOf(randomOf(seed * 1_000 + kit), days));
  const seqs = new Map<number, number>();
  // Numbers are those of the observation, whatever the arrival.
  const numbered = lives.flatMap((life, kit) =>
    messagesOf(kit, life, days)
      .toSorted((a, b) => a.said_ms - b.said_ms)
      .map((message) => {
        const seq = (seqs.get(kit) ?? 0) + 1;
        seqs.set(kit, seq);
        return { kit, seq, message };
      }),
  );
  const byArrival = Map.groupBy(
    numbered.toSorted((a, b) => a.message.arrives_ms - b.message.arrives_ms || a.seq - b.seq),
    ({ message }) => message.arrives_ms,
  );
  let looked_ms = start_ms;
  for (const [arrives_ms, some] of byArrival) {
    for (; looked_ms < arrives_ms; looked_ms += 10 * minute_ms) await store.lookAtAlarms(looked_ms);
    const receptions = some.map(({ kit, seq, message: { channel, data, said_ms, historical } }) => {
      const reception = received({ kit: uuid(kit, 0), channel, data, epoch: 1, seq, time_ms: said_ms });
      return { ...reception, historical };
    });
    await store.commit(receptions, arrives_ms);
  }
  const end_ms = start_ms + (days + 2) * day_ms;
  let alarms = 0;
  for (const [kit, life] of lives.entries()) {
    const query = { kits: [uuid(kit, 0)], states: alarmStates, limit: 10_000, now_ms: end_ms };
    const found = await store.alarms(query);
    const told = found.map(
      ({ what, since_ms, closed_ms, count }) => `${what} ${since_ms} ${closed_ms} ${count}`,
    );
    expect(told.sort()).toEqual(referenceOf(life));
    expect(found.length).toBeGreaterThan(days);
    alarms += found.length;
  }
  return alarms;
}
