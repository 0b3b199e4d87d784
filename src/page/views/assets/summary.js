/** The most important values of an asset in one line: current values first, then old ones. */
import { duration, feedFreshness } from '../../world/age.js';
import { bearingText } from '../../world/geo.js';
import { isRecord, own } from '../../world/json.js';
import { placeOfAsset, placeOfKit } from '../../world/places.js';
import { plain } from '../../world/text.js';
import { heightIn, measureText } from '../../world/units.js';
import { fieldOf, numberOf } from '../../world/world.js';
import { t } from '../../words/words.js';
import { html } from '../parts/html.js';

/** @import { LiveAsset, View } from '../../types.d.ts' */

/** @typedef {{ readonly text: string, readonly isOld: boolean }} Fact */

/** @typedef {{ readonly current: string, readonly old: string }} Summary */

/**
 * @param {LiveAsset} asset
 * @param {View} view
 * @returns {Summary}
 */
export function summaryOf(asset, view) {
  const facts = [...feedFacts(asset, view), ...placeFacts(asset, view)];
  const current = facts.filter(({ isOld }) => !isOld).map(({ text }) => text);
  const old = facts.filter(({ isOld }) => isOld).map(({ text }) => text);
  const reason = asset.status === 'offline' && asset.status_reason ? [plain(asset.status_reason)] : [];
  const first = [...reason, ...current];
  if (first.length === 0 && old.length === 0) first.push(modelOf(asset));
  return { current: first.join(', '), old: old.join(', ') };
}

/** @param {Summary} summary */
export function summaryView({ current, old }) {
  return html`<bdi>${current}</bdi
    >${old && html`<span class="was">${current && ', '}${t.was} <bdi>${old}</bdi></span>`}`;
}

/**
 * @param {LiveAsset} asset
 * @returns {string}
 */
function modelOf({ vendor, model, type }) {
  return plain([vendor, model].filter(Boolean).join(' ')) || (own(t.type, type) ?? plain(type));
}

/**
 * @param {LiveAsset} asset
 * @param {View} view
 * @returns {readonly Fact[]}
 */
function feedFacts(asset, view) {
  const feeds = view.world.feeds.get(asset.id) ?? {};
  const texts = [...droneFacts(feeds), ...cameraFacts(feeds, view), ...radioFacts(feeds)];
  return texts.map(([feed, text]) => ({ text, isOld: feedFreshness(asset, feed, view).isOld }));
}

/** @typedef {NonNullable<ReturnType<View['world']['feeds']['get']>>} Feeds */
/** @typedef {readonly (readonly [feed: string, text: string])[]} Texts */

/**
 * @param {Feeds} feeds
 * @returns {Texts}
 */
function droneFacts({ sys_status, battery, gps }) {
  const mode = fieldOf(sys_status, 'flight_mode');
  const armed = fieldOf(sys_status, 'armed');
  const height_m = numberOf(gps, 'relative_alt_m');
  const remaining = numberOf(battery, 'remaining_pct');
  return [
    ...(typeof mode === 'string' ? [/** @type {const} */ (['sys_status', plain(mode)])] : []),
    ...(typeof armed === 'boolean'
      ? [/** @type {const} */ (['sys_status', armed ? t.drone.armed : t.drone.disarmed])]
      : []),
    ...(height_m !== undefined && armed === true
      ? [/** @type {const} */ (['gps', measureText(heightIn(height_m))])]
      : []),
    ...(remaining === undefined
      ? []
      : [/** @type {const} */ (['battery', t.drone.battery(Math.round(remaining))])]),
  ];
}

/**
 * @param {Feeds} feeds
 * @param {View} view
 * @returns {Texts}
 */
function cameraFacts({ motion, ai_detection }, { time_ms }) {
  const types = fieldOf(ai_detection, 'types');
  const seen = Array.isArray(types) && fieldOf(ai_detection, 'detected') === true ? types.map(String) : [];
  /** @type {(readonly [string, string])[]} */
  const facts = [];
  if (seen.length > 0)
    facts.push(['ai_detection', seen.map((type) => own(t.seen, type) ?? plain(type)).join(', ')]);
  else if (fieldOf(motion, 'detected') === true) facts.push(['motion', t.camera.motion]);
  else if (motion) facts.push(['motion', t.camera.quiet(duration(time_ms - Date.parse(motion.time)))]);
  return facts;
}

/**
 * @param {Feeds} feeds
 * @returns {Texts}
 */
function radioFacts({ mesh }) {
  const list = fieldOf(mesh, 'neighbours');
  if (!Array.isArray(list)) return [];
  const levels = list.flatMap((each) =>
    isRecord(each) && typeof each['rssi'] === 'number' ? [each['rssi']] : [],
  );
  return [
    ['mesh', t.radio.peers({ n: list.length, weakest: levels.length > 0 ? Math.min(...levels) : null })],
  ];
}

/**
 * @param {LiveAsset} asset
 * @param {View} view
 * @returns {readonly Fact[]}
 */
function placeFacts(asset, view) {
  // The gateway is the kit: its distance is meaningless.
  if (asset.type === 'gateway') return [];
  const from = placeOfKit(view);
  const to = placeOfAsset(asset, view);
  return from && to ? [{ text: bearingText(from, to), isOld: to.isOld }] : [];
}
