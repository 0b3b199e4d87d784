/** The kits of a key with their summaries, for List Kits and for the fleet socket. */
import { turnEvery } from '../platform/time.ts';
import { maySee, type Principal } from './principal.ts';
import type { KitResource } from './api/resources.ts';
import {
  iso,
  isOnline,
  kitResource,
  queueResource,
  telemetrySnapshot,
  turnsAt,
  unreportedKit,
} from './api/views.ts';
import type { AssetState, StoredKit } from './stored/stored.ts';
import { lostLately } from './stored/losses.ts';
import type { Attention, KitSummary } from './api/summary.ts';
import type { Store } from './store/sql-store.ts';

/** Kits that are summarised in one turn of the event loop: a key may see ten thousand, and other clients must not wait for them. */
const kits_a_turn = 250;

export interface ListedKit {
  readonly kit: KitResource;
  /** When it changes without a message; undefined: never. */
  readonly turn_ms: number | undefined;
}

/** Returns the kits of the key, or those among `kit_ids`; a kit that the key names and that never reported is one of them. */
export async function listKits(
  store: Pick<Store, 'kits' | 'assetStates'>,
  principal: Pick<Principal, 'kits'>,
  { now_ms, kit_ids }: { readonly now_ms: number; readonly kit_ids?: readonly string[] | undefined },
): Promise<ListedKit[]> {
  const wanted = kit_ids?.filter((id) => maySee(principal, id)) ?? principal.kits;
  const [reported, assets] = await Promise.all([store.kits(wanted), store.assetStates(wanted)]);
  const ids = new Set(reported.map(({ kit_id }) => kit_id));
  const named = principal.kits === '*' || wanted === '*' ? [] : wanted;
  const others = named.filter((kit_id) => !ids.has(kit_id)).map(unreportedKit);
  const byKit = Map.groupBy(assets, ({ kit_id }) => kit_id);
  const pause = turnEvery(kits_a_turn);
  const kits: ListedKit[] = [];
  for (const kit of [...reported, ...others]) {
    kits.push(listed(kit, byKit.get(kit.kit_id) ?? [], now_ms));
    await pause();
  }
  return kits;
}

function listed(kit: StoredKit, assets: readonly AssetState[], now_ms: number): ListedKit {
  const fix_ms = kit.parts['location']?.time_ms;
  const timed = {
    ...telemetrySnapshot(kit, now_ms),
    last_seen: kit.heard_ms === null ? null : iso(kit.heard_ms),
    times: fix_ms === undefined ? {} : { location: iso(fix_ms) },
  };
  return {
    kit: { ...kitResource(kit, now_ms), summary: summaryOf(kit, assets, now_ms) },
    turn_ms: turnsAt(timed, now_ms),
  };
}

/** Of one kit; the gravest are kept. */
const attention_max = 32;
const battery_low_pct = 20;
/** A backlog of fewer messages is reported only when it is old. */
const waiting_reported_min = 100;
const waiting_age_reported_min_ms = 60_000;
/** Sentences of degraded conditions. */
const degraded_max = 8;

/** `assets`: the states of the kit's assets. */
export function summaryOf(kit: StoredKit, assets: readonly AssetState[], now_ms: number): KitSummary {
  const { wans, battery, battery_charging } = telemetrySnapshot(kit, now_ms);
  const used = wans.find(({ status }) => status === 'online');
  return {
    ...(used && { link: { name: used.name, ...(used.type && { type: used.type }) } }),
    ...(used?.latency_ms !== undefined && { latency_ms: used.latency_ms }),
    battery,
    battery_charging,
    waiting: queueResource(kit, now_ms).waiting_rows,
    assets: { online: assets.filter(({ status }) => status === 'online').length, total: assets.length },
    attention: attentionOf(kit, assets, now_ms),
  };
}

function attentionOf(kit: StoredKit, assets: readonly AssetState[], now_ms: number): Attention[] {
  if (kit.heard_ms === null) return [{ key: 'never', level: 'warn' }];
  const found = [...ofKit(kit, now_ms), ...ofAssets(kit, assets, now_ms), ...ofQueue(kit, now_ms)];
  return found.sort((a, b) => Number(b.level === 'bad') - Number(a.level === 'bad')).slice(0, attention_max);
}

function ofKit(kit: StoredKit, now_ms: number): Attention[] {
  const { location, wans } = telemetrySnapshot(kit, now_ms);
  const found: Attention[] = [...ofBattery(kit, now_ms)];
  if (!isOnline(kit, now_ms)) return [{ key: 'offline', level: 'bad' }, ...found];
  for (const subject of kit.state?.degraded.slice(0, degraded_max) ?? []) {
    found.push({ key: 'degraded', level: 'warn', subject });
  }
  if (location?.stale) found.push({ key: 'fix', level: 'warn' });
  for (const { name, status } of wans) {
    if (status === 'offline') found.push({ key: 'link', level: 'warn', subject: name });
  }
  return found;
}

function ofBattery(kit: StoredKit, now_ms: number): Attention[] {
  const { battery, battery_charging } = telemetrySnapshot(kit, now_ms);
  if (battery === null || battery > battery_low_pct || battery_charging === true) return [];
  return [{ key: 'battery', level: battery <= battery_low_pct / 2 ? 'bad' : 'warn', value: battery }];
}

/** Those of an offline kit are not reachable in any case. */
function ofAssets(kit: StoredKit, assets: readonly AssetState[], now_ms: number): Attention[] {
  if (!isOnline(kit, now_ms)) return [];
  return assets
    .filter(({ status }) => status === 'offline')
    .map(({ asset_id }) => ({ key: 'asset', level: 'warn', subject: asset_id }));
}

function ofQueue(kit: StoredKit, now_ms: number): Attention[] {
  const { online, waiting_rows, oldest } = queueResource(kit, now_ms);
  const age_ms = oldest === null ? 0 : now_ms - Date.parse(oldest);
  const found: Attention[] = [];
  const isLong = (waiting_rows ?? 0) >= waiting_reported_min || age_ms > waiting_age_reported_min_ms;
  if (online && waiting_rows && isLong) found.push({ key: 'queue', level: 'warn', value: waiting_rows });
  for (const key of ['dropped', 'refused'] as const) {
    const value = lostLately(kit.losses[key], now_ms);
    if (value > 0) found.push({ key, level: 'warn', value });
  }
  return found;
}
