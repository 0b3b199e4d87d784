/** Lists what needs attention, worst first. */
import { assetState, duration, isKitReachable, partFreshness } from '../world/age.js';
import { size } from '../world/text.js';
import { numberOf } from '../world/world.js';

/** @import { Now } from '../types.d.ts' */

const battery_low_pct = 20;
const queue_rows_reported_min = 100;
const queue_age_reported_min_ms = 60_000;

/**
 * Returns the sentences, each with a key that stays the same while its condition lasts. Names in them are not sanitised yet.
 * @param {Now} now
 * @returns {readonly { readonly key: string, readonly text: string }[]}
 */
export function attentionList(now) {
  const { kit } = now.world;
  if (!kit) return [];
  return [...ofKit(now), ...ofLinks(now), ...ofAssets(now), ...ofQueue(now)];
}

/** @param {Now} now */
function ofKit(now) {
  const degraded = now.world.queue?.degraded ?? [];
  return [
    ...silence(now),
    ...degraded.map((sentence) => ({ key: `degraded ${sentence}`, text: `Kit: ${sentence}` })),
    ...battery(now),
    ...position(now),
  ];
}

/** @param {Now} now */
function silence({ world: { kit, queue }, time_ms }) {
  if (!kit || kit.online) return [];
  const seen = kit.last_seen
    ? `last seen ${duration(time_ms - Date.parse(kit.last_seen))} ago`
    : 'never seen';
  const reason = queue?.reason ? `: ${queue.reason}` : '';
  return [{ key: 'kit', text: `Kit is offline, ${seen}${reason}` }];
}

/** @param {Now} now */
function battery({ world: { kit } }) {
  if (!kit || kit.battery === null || kit.battery > battery_low_pct || kit.battery_charging) return [];
  const charging = kit.battery_charging === false ? ', not charging' : '';
  return [{ key: 'battery', text: `Kit battery ${Math.round(kit.battery)} %${charging}` }];
}

/** @param {Now} now */
function position(now) {
  const { age_ms, isOld } = partFreshness('location', now);
  if (!isKitReachable(now) || !now.world.kit?.location || !isOld || age_ms === null) return [];
  return [{ key: 'fix', text: `Kit position is ${duration(age_ms)} old` }];
}

/** @param {Now} now */
function ofLinks({ world: { kit } }) {
  return (kit?.wans ?? [])
    .filter(({ status }) => status === 'offline')
    .map(({ name, isp }) => ({
      key: `link ${name}`,
      text: `Link ${name}${isp ? ` (${isp})` : ''} is offline`,
    }));
}

/** @param {Now} now */
function ofAssets(now) {
  const found = [];
  for (const asset of now.world.assets.values()) {
    if (assetState(asset, now) === 'offline') {
      const reason = asset.status_reason ? `: ${asset.status_reason}` : '';
      found.push({ key: `asset ${asset.id}`, text: `${asset.name} is offline${reason}` });
    } else {
      const remaining = numberOf(now.world.feeds.get(asset.id)?.['battery'], 'remaining_pct');
      if (remaining !== undefined && remaining <= battery_low_pct) {
        found.push({ key: `battery ${asset.id}`, text: `${asset.name}: battery ${Math.round(remaining)} %` });
      }
    }
  }
  return found;
}

/** @param {Now} now */
function ofQueue({ world: { queue }, time_ms }) {
  if (!queue) return [];
  const found = [];
  const { waiting_rows, waiting_bytes, oldest, dropped, refused } = queue;
  const age_ms = oldest === null ? 0 : time_ms - Date.parse(oldest);
  if (waiting_rows && (waiting_rows >= queue_rows_reported_min || age_ms > queue_age_reported_min_ms)) {
    const bytes = waiting_bytes === null ? '' : ` (${size(waiting_bytes)})`;
    const since = oldest === null ? '' : `, oldest ${duration(age_ms)}`;
    found.push({ key: 'queue', text: `${waiting_rows} messages wait on the kit${bytes}${since}` });
  }
  if (dropped > 0) found.push({ key: 'dropped', text: `The kit has dropped ${dropped} messages` });
  if (refused > 0) found.push({ key: 'refused', text: `${refused} messages of the kit could not be read` });
  return found;
}
