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
import { conditionsOf } from './alarms/conditions.ts';
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
  const found = conditionsOf(kit, now_ms).map(({ what, severity, ...about }): Attention =>
    Object.assign(
      { key: what, level: severity === 'critical' ? ('bad' as const) : ('warn' as const) },
      about,
    ),
  );
  // Those of an offline kit are not reachable in any case.
  const offline = isOnline(kit, now_ms) ? assets.filter(({ status }) => status === 'offline') : [];
  const lost = offline.map(({ asset_id }): Attention => ({ key: 'asset', level: 'warn', subject: asset_id }));
  const rank = ({ key, level }: Attention): number =>
    level === 'bad' ? 0 : 1 + Number(behind_assets.has(key)) * 2 + Number(key === 'asset');
  return [...found, ...lost].sort((a, b) => rank(a) - rank(b)).slice(0, attention_max);
}

const behind_assets: ReadonlySet<Attention['key']> = new Set(['queue', 'dropped', 'refused']);
