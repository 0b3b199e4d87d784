/** How a kit of the list is: from its summary where the service gives one, else from its last telemetry. */
import { field } from '../../world/json.js';
import { t } from '../../words/words.js';

/** @import { KitResource } from '../../types.d.ts' */

/** @typedef {{ readonly state: 'online' | 'attention' | 'offline' | 'none', readonly reasons: readonly string[] }} Judged */

const battery_low_pct = 20;
const queue_reported_min = 100;

/**
 * @param {KitResource} kit
 * @returns {Judged}
 */
export function judge(kit) {
  if (!kit.last_seen) return { state: 'none', reasons: [t.hero.never] };
  if (!kit.online) return { state: 'offline', reasons: [] };
  const reasons = [...ofLinks(kit), ...ofBattery(kit), ...ofQueue(kit)];
  return { state: reasons.length > 0 ? 'attention' : 'online', reasons };
}

/** @param {KitResource} kit */
function ofLinks({ live }) {
  return (live?.wans ?? [])
    .filter(({ status }) => status === 'offline')
    .map(({ isp, name }) => `${t.attention.linkOffline(isp ? isp : name)}.`);
}

/** @param {KitResource} kit */
function ofBattery({ live }) {
  const battery = live?.battery;
  if (typeof battery !== 'number' || battery > battery_low_pct || live?.battery_charging === true) return [];
  return [`${t.attention.kitBattery(Math.round(battery))}.`];
}

/** @param {KitResource} kit */
function ofQueue(kit) {
  const waiting = field(field(kit, 'summary'), 'waiting');
  return typeof waiting === 'number' && waiting >= queue_reported_min
    ? [`${t.attention.queue(waiting)}.`]
    : [];
}
