/** Lists what needs a person, worst first: as keys with parameters, which become sentences in the language of the page. */
import { assetState, isKitReachable, partFreshness } from '../../world/age.js';
import { addressOf } from '../../world/route.js';
import { queueFreshness } from '../../world/queue.js';
import { sentence } from '../../world/text.js';
import { numberOf } from '../../world/world.js';
import { t } from '../../words/words.js';
import { iconOfLink, iconOfType } from '../parts/icon.js';

/** @import { Icon } from '../parts/icon.js' */
/** @import { LiveAsset, Now, QueueResource } from '../../types.d.ts' */

/**
 * @typedef {object} Attention
 * @property {string} key the same while its condition lasts
 * @property {'bad' | 'warn'} level
 * @property {Icon} icon
 * @property {string} title names in it are not sanitised yet
 * @property {string} detail
 * @property {string} href
 */

const battery_low_pct = 20;
const queue_rows_reported_min = 100;
const queue_age_reported_min_ms = 60_000;
const day_ms = 86_400_000;

/** Of the moment that is drawn: several parts of the page show it. */
/** @type {WeakMap<Now, readonly Attention[]>} */
const lists = new WeakMap();

/**
 * @param {Now} now
 * @returns {readonly Attention[]}
 */
export function attentionList(now) {
  const list = lists.get(now) ?? listOf(now);
  lists.set(now, list);
  return list;
}

/**
 * @param {Now} now
 * @returns {readonly Attention[]}
 */
function listOf(now) {
  const { kit } = now.world;
  if (!kit) return [];
  const all = [...ofKit(now), ...ofLinks(now), ...ofAssets(now), ...ofQueue(now)];
  return all.sort((a, b) => Number(b.level === 'bad') - Number(a.level === 'bad'));
}

/**
 * @param {Now} now
 * @returns {readonly Attention[]}
 */
function ofKit(now) {
  const { queue, kit } = now.world;
  const degraded = isKitReachable(now) ? (queue?.degraded ?? []) : [];
  const href = addressOf('overview', kit?.kit_id ?? null);
  return [
    ...silence(now),
    ...degraded.map(
      (text) =>
        /** @type {const} */ ({
          key: `degraded ${text}`,
          level: 'warn',
          icon: 'server',
          title: sentence(text),
          detail: t.attention.reportedByKit,
          href,
        }),
    ),
    ...battery(now),
    ...position(now),
  ];
}

/**
 * @param {Now} now
 * @returns {readonly Attention[]}
 */
function silence({ world: { kit, queue }, time_ms }) {
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

/**
 * @param {Now} now
 * @returns {readonly Attention[]}
 */
function battery({ world: { kit } }) {
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

/**
 * @param {Now} now
 * @returns {readonly Attention[]}
 */
function position(now) {
  const { kit } = now.world;
  const { age_ms, isOld } = partFreshness('location', now);
  if (!isKitReachable(now) || !kit?.location || !isOld || age_ms === null) return [];
  return [
    {
      key: 'fix',
      level: 'warn',
      icon: 'locate-fixed',
      title: t.attention.positionOld(age_ms),
      detail: t.attention.positionOldWhy,
      href: addressOf('map', kit.kit_id),
    },
  ];
}

/**
 * @param {Now} now
 * @returns {readonly Attention[]}
 */
function ofLinks({ world: { kit, linkEdges }, time_ms }) {
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
        level: /** @type {const} */ ('warn'),
        icon: iconOfLink(type),
        title: t.attention.linkOffline(isp ? `${isp} (${name})` : name),
        detail,
        href: addressOf('links', kit?.kit_id ?? null),
      };
    });
}

/**
 * @param {Now} now
 * @returns {readonly Attention[]}
 */
function ofAssets(now) {
  return [...now.world.assets.values()].flatMap((asset) => ofAsset(asset, now));
}

/**
 * @param {LiveAsset} asset
 * @param {Now} now
 * @returns {readonly Attention[]}
 */
function ofAsset(asset, now) {
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
  const remaining = numberOf(now.world.feeds.get(id)?.['battery'], 'remaining_pct');
  if (remaining === undefined || remaining > battery_low_pct) return [];
  const level = remaining <= battery_low_pct / 2 ? 'bad' : 'warn';
  return [
    {
      key: `battery ${id}`,
      level,
      title: t.attention.assetBattery({ name, pct: Math.round(remaining) }),
      detail: '',
      ...about,
    },
  ];
}

/**
 * A report of the queue that is old, or was written before the kit went offline, is no alarm: the queue's card marks it.
 * @param {Now} now
 * @returns {readonly Attention[]}
 */
function ofQueue(now) {
  const { queue, kit } = now.world;
  if (!queue || !kit) return [];
  const { waiting_rows, waiting_bytes, oldest } = queue;
  const about = {
    level: /** @type {const} */ ('warn'),
    icon: /** @type {const} */ ('layers'),
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

/**
 * What was lost in the last day needs a person; the totals stay in the queue's card.
 * @param {Now} now
 * @param {QueueResource} queue
 * @param {Pick<Attention, 'level' | 'icon' | 'href'>} about
 */
function lossesOf({ time_ms }, { dropped_last, refused_last }, about) {
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

/**
 * @param {readonly { readonly time: string, readonly count: number }[]} kinds
 * @param {number} time_ms
 */
function lostLately(kinds, time_ms) {
  const late = kinds.filter(({ time }) => time_ms - Date.parse(time) < day_ms);
  return late.reduce((sum, { count }) => sum + count, 0);
}
