/** Lists what needs a person, worst first: as keys with parameters, which become sentences in the language of the page. */
import { assetState, isKitReachable, partFreshness, queueFreshness } from '../world/age.ts';
import { addressOf } from '../world/route.ts';
import { sentence } from '../world/text.ts';
import { failsafeText } from '../world/history/log.ts';
import { field, listIn, own, textIn } from '../json.ts';
import { number } from '../units.ts';
import { fieldOf, numberOf } from '../world/world.ts';
import { t } from '../words/words.ts';
import { iconOfLink, iconOfType, type Icon } from './parts/icon.ts';
import type { FeedMessage, LiveAsset, Now, QueueResource } from '../types.js';

interface Attention {
  /** The same while its condition lasts. */
  key: string;
  level: 'bad' | 'warn';
  icon: Icon;
  /** Names in it are not sanitised yet. */
  title: string;
  detail: string;
  href: string;
}

const battery_low_pct = 20;
const queue_rows_reported_min = 100;
const queue_age_reported_min_ms = 60_000;
const day_ms = 86_400_000;

/** Of the moment that is drawn: several parts of the page show it. */
const lists: WeakMap<Now, readonly Attention[]> = new WeakMap();

export function attentionList(now: Now): readonly Attention[] {
  const list = lists.get(now) ?? listOf(now);
  lists.set(now, list);
  return list;
}

function listOf(now: Now): readonly Attention[] {
  const { kit } = now.world;
  if (!kit) return [];
  const all = [...ofKit(now), ...ofLinks(now), ...ofAssets(now), ...ofQueue(now)];
  return all.sort((a, b) => Number(b.level === 'bad') - Number(a.level === 'bad'));
}

function ofKit(now: Now): readonly Attention[] {
  const { queue, kit } = now.world;
  const degraded = isKitReachable(now) ? (queue?.degraded ?? []) : [];
  const href = addressOf('overview', kit?.kit_id ?? null);
  return [
    ...silence(now),
    ...degraded.map(
      (text) =>
        ({
          key: `degraded ${text}`,
          level: 'warn',
          icon: 'server',
          title: sentence(text),
          detail: t.attention.reportedByKit,
          href,
        }) as const,
    ),
    ...battery(now),
    ...position(now),
  ];
}

function silence({ world: { kit, queue }, time_ms }: Now): readonly Attention[] {
  if (!kit || kit.online) return [];
  const seen = kit.last_seen
    ? t.attention.lastSeen({
        time_ms: Date.parse(kit.last_seen),
        age_ms: time_ms - Date.parse(kit.last_seen),
        reason: queue?.reason ?? '',
      })
    : t.attention.neverSeen;
  return [
    {
      key: 'kit',
      level: 'bad',
      icon: 'server',
      title: kit.last_seen ? t.attention.kitOffline : t.hero.never,
      detail: seen,
      href: addressOf('activity', kit.kit_id),
    },
  ];
}

function battery({ world: { kit } }: Now): readonly Attention[] {
  if (!kit || typeof kit.battery !== 'number' || kit.battery > battery_low_pct || kit.battery_charging)
    return [];
  return [
    {
      key: 'battery',
      level: kit.battery <= battery_low_pct / 2 ? 'bad' : 'warn',
      icon: 'battery-low',
      title: t.attention.kitBattery(Math.round(kit.battery)),
      detail: kit.battery_charging === false ? t.tile.notCharging : t.tile.chargingUnknown,
      href: addressOf('overview', kit.kit_id),
    },
  ];
}

function position(now: Now): readonly Attention[] {
  const { kit } = now.world;
  const { age_ms, isOld } = partFreshness('location', now);
  if (!isKitReachable(now) || !kit?.location || !isOld || age_ms === null) return [];
  return [
    {
      key: 'fix',
      level: 'warn',
      icon: 'locate-fixed',
      title: t.attention.positionOld,
      detail: t.attention.positionOldWhy,
      href: addressOf('map', kit.kit_id),
    },
  ];
}

function ofLinks({ world: { kit, linkEdges }, time_ms }: Now): readonly Attention[] {
  return (kit?.wans ?? [])
    .filter(({ status }) => status === 'offline')
    .map(({ name, isp, type }) => {
      const edge = linkEdges.get(name);
      const detail =
        edge && edge.status === 'offline'
          ? t.attention.since({ time_ms: edge.time_ms, age_ms: time_ms - edge.time_ms, reason: edge.reason })
          : t.attention.noReason;
      return {
        key: `link ${name}`,
        level: 'warn' as const,
        icon: iconOfLink(type),
        title: t.attention.linkOffline(isp ? `${isp} (${name})` : name),
        detail,
        href: addressOf('links', kit?.kit_id ?? null),
      };
    });
}

function ofAssets(now: Now): readonly Attention[] {
  return [...now.world.assets.values()].flatMap((asset) => ofAsset(asset, now));
}

function ofAsset(asset: LiveAsset, now: Now): readonly Attention[] {
  const { id, name, type, status_reason, last_seen_at } = asset;
  const about = { icon: iconOfType(type), href: addressOf('asset', now.world.kit?.kit_id ?? null, id) };
  if (assetState(asset, now) === 'offline') {
    const time_ms = Date.parse(last_seen_at);
    const detail = t.attention.lastSeen({
      time_ms,
      age_ms: now.time_ms - time_ms,
      reason: status_reason ?? '',
    });
    return [
      {
        key: `asset ${id}`,
        level: type === 'drone' ? 'bad' : 'warn',
        title: t.attention.assetOffline(name),
        detail,
        ...about,
      },
    ];
  }
  const { battery, failsafe } = now.world.feeds.get(id) ?? {};
  const level = batteryLevel(battery);
  const isActive = fieldOf(failsafe, 'detected') === true;
  const reasons = listIn(fieldOf(failsafe, 'causes')).map((cause) => textIn(field(cause, 'reason')));
  return [
    ...(isActive
      ? [
          {
            key: `failsafe ${id}`,
            level: 'bad' as const,
            title: `${name}: ${failsafeText(failsafe?.data)}`,
            detail: [...new Set(reasons)].filter((reason) => reason !== '').join(', '),
            ...about,
          },
        ]
      : []),
    ...(level
      ? [{ key: `battery ${id}`, level, title: `${name}: ${batteryText(battery)}`, detail: '', ...about }]
      : []),
  ];
}

const charge_levels: Readonly<Record<string, 'bad' | 'warn'>> = {
  low: 'warn',
  critical: 'bad',
  emergency: 'bad',
  failed: 'bad',
  unhealthy: 'bad',
};

/** As the vehicle judges its battery, by its voltage too; by the percentage alone where that is worse. */
function batteryLevel(battery: FeedMessage | undefined): 'bad' | 'warn' | undefined {
  const remaining = numberOf(battery, 'remaining_pct') ?? 100;
  const own_level = own(charge_levels, textIn(fieldOf(battery, 'charge_state')));
  if (own_level === 'bad' || remaining <= battery_low_pct / 2) return 'bad';
  return own_level ?? (remaining <= battery_low_pct ? 'warn' : undefined);
}

function batteryText(battery: FeedMessage | undefined): string {
  const remaining = numberOf(battery, 'remaining_pct');
  const volts = numberOf(battery, 'voltage');
  const state = own(t.drone.charge, textIn(fieldOf(battery, 'charge_state')));
  const parts = [
    ...(remaining === undefined ? [] : [`${Math.round(remaining)}\u00a0%`]),
    ...(volts === undefined ? [] : [`${number(volts, 1)}\u00a0V`]),
    ...(state === undefined ? [] : [state]),
  ];
  return `${t.drone.batteryTerm} ${parts.join(', ')}`;
}

/** A report of the queue that is old, or was written before the kit went offline, is no alarm: the queue's card marks it. */
function ofQueue(now: Now): readonly Attention[] {
  const { queue, kit } = now.world;
  if (!queue || !kit) return [];
  const { waiting_rows, waiting_bytes, oldest } = queue;
  const about = {
    level: 'warn' as const,
    icon: 'layers' as const,
    href: addressOf('links', kit.kit_id),
  };
  const age_ms = oldest ? now.time_ms - Date.parse(oldest) : 0;
  const isLong = (waiting_rows ?? 0) >= queue_rows_reported_min || age_ms > queue_age_reported_min_ms;
  const found = [];
  if (waiting_rows && isLong && !queueFreshness(now).isOld) {
    const title = t.attention.queue(waiting_rows);
    found.push({
      key: 'queue',
      title,
      detail: t.attention.queueSize({ bytes: waiting_bytes ?? null, age_ms }),
      ...about,
    });
  }
  return [...found, ...lossesOf(now, queue, about)];
}

/** What was lost in the last day needs a person; the totals stay in the queue's card. */
function lossesOf(
  { time_ms }: Now,
  { dropped_last, refused_last }: QueueResource,
  about: Pick<Attention, 'level' | 'icon' | 'href'>,
) {
  const dropped = lostLately(dropped_last, time_ms);
  const refused = lostLately(refused_last, time_ms);
  const why = t.attention.rejectedWhy(refused_last[0]?.reason ?? '');
  return [
    {
      key: 'dropped',
      lost: dropped,
      title: t.attention.dropped(dropped),
      detail: t.attention.droppedWhy,
      ...about,
    },
    { key: 'refused', lost: refused, title: t.attention.rejected(refused), detail: why, ...about },
  ].filter(({ lost }) => lost > 0);
}

function lostLately(kinds: readonly { readonly time: string; readonly count: number }[], time_ms: number) {
  const late = kinds.filter(({ time }) => time_ms - Date.parse(time) < day_ms);
  return late.reduce((sum, { count }) => sum + count, 0);
}
