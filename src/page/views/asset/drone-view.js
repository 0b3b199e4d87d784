/** The page of a drone: map and instruments first, the last minutes, and what a pilot needs in one tap. */
import { feedFreshness } from '../../world/age.js';
import { bearingOf } from '../../world/geo.js';
import { listIn } from '../../world/json.js';
import { placeOfAsset, placeOfKit } from '../../world/places.js';
import { plain } from '../../world/text.js';
import { feedsThen } from '../../world/history/moment.js';
import { clock, distanceIn, heightIn, number, speedIn } from '../../world/units.js';
import { fieldOf, numberOf } from '../../world/world.js';
import { t } from '../../words/words.js';
import { lockAtAnyTime, titleOf } from '../command/about.js';
import { emptyText } from '../history/range.js';
import { mapBox } from '../map/map-box.js';
import { html } from '../parts/html.js';
import { icon, shape } from '../parts/icon.js';
import { age, card } from '../parts/marks.js';
import { spark } from '../parts/spark.js';
import { isWideNow } from '../parts/wide.js';
import { flyCard } from './fly.js';
import { horizon } from './horizon.js';
import { Video } from './video.js';

/** @import { FeedsThen } from '../../world/history/moment.js' */
/** @import { Measure } from '../../world/units.js' */
/** @import { FeedMessage, Freshness, LiveAsset, View } from '../../types.d.ts' */

/** @typedef {{ readonly first: unknown, readonly way: unknown, readonly past: unknown, readonly commands: unknown, readonly rest: unknown }} Shared `way`: what chooses the time of the track; `past`: the history */

/** What the instruments show. */
const shown_feeds = ['sys_status', 'attitude', 'gps', 'vfr_hud', 'battery'];

/** Commands with a separate button, where the drone has them. */
const tray = ['return_home', 'hold', 'land'];

/**
 * @param {LiveAsset} asset
 * @param {View} view
 * @param {Shared} shared
 */
export function droneBody(asset, view, { first, way, past, commands, rest }) {
  // On a phone it stands below the map, where a tap is answered in sight.
  const fly = flyCard(asset, view);
  const isWide = isWideNow();
  const feeds = view.world.feeds.get(asset.id) ?? {};
  const then = feedsThen(asset, shown_feeds, view);
  const ageNow = then ? '' : age(feedFreshness(asset, 'sys_status', view));
  return html`<div class="page aside drone">
      <div class="column main">
        ${first}
        <div class="map-and-video">${mapBox(view, { asset, isTall: true })}${videoCorner(asset)}</div>
        ${!isWide && fly} ${way}
      </div>
      <div class="column">
        ${then ? instrumentsThen(then, view) : instruments(asset, view)}
        ${trayView(asset, view, 'card only-wide')} ${isWide && fly} ${reasons(then?.feeds ?? feeds, ageNow)}
        ${minutes(asset, view)} ${commands}${past}${rest}
      </div>
    </div>
    ${trayView(asset, view, 'only-phone')}`;
}

/** @param {LiveAsset} asset */
function videoCorner({ whep_url, name }) {
  return whep_url
    ? html`<div class="corner"><${Video} key=${whep_url} url=${whep_url} title=${plain(name)} /></div>`
    : '';
}

/**
 * @param {LiveAsset} asset
 * @param {View} view
 */
function instruments(asset, view) {
  const feeds = view.world.feeds.get(asset.id) ?? {};
  const kit = placeOfKit(view);
  const place = placeOfAsset(asset, view);
  const distance_m = kit && place ? bearingOf(kit, place).distance_m : undefined;
  return panel(
    feeds,
    figures(feeds, figure(t.drone.fromKit, place ?? 'gps', distance_m, distanceIn)),
    (feed) => (typeof feed === 'string' ? feedFreshness(asset, feed, view) : feed),
  );
}

/**
 * The same, as it was at the moment that is looked at.
 * @param {FeedsThen} then
 * @param {View} view
 */
function instrumentsThen({ feeds, isLoading, fault }, { choices }) {
  const list = figures(feeds, []);
  const isEmpty = list.length === 0 && !feeds['attitude'];
  return isLoading || isEmpty
    ? html`<section key="instruments" class="card pad instruments" aria-label=${t.drone.instruments}>
        <p class="cap">${emptyText({ isLoading, fault })}</p>
      </section>`
    : panel(feeds, list, () => ({ age_ms: 0, isOld: false }), clock(choices.moment_ms ?? 0));
}

/**
 * @param {Readonly<Record<string, FeedMessage>>} feeds
 * @param {readonly Figure[]} facts
 * @param {(feed: string | Freshness) => Freshness} freshnessOf
 * @param {string} [time] of all values; empty: each has its own age
 */
function panel(feeds, facts, freshnessOf, time = '') {
  const roll = numberOf(feeds['attitude'], 'roll');
  const pitch = numberOf(feeds['attitude'], 'pitch');
  if (facts.length === 0 && roll === undefined) return '';
  return html`<section key="instruments" class="card pad instruments" aria-label=${t.drone.instruments}>
    ${roll !== undefined && pitch !== undefined ? horizon({ roll, pitch, isOld: freshnessOf('attitude').isOld }) : ''}
    <dl class="facts">
      ${
        time &&
        html`<div key="time" class="fact">
          <dt>${t.history.moment}</dt>
          <dd>${time}</dd>
        </div>`
      }
      ${facts.map(({ term, value, unit, feed }) => {
        const freshness = freshnessOf(feed);
        return html`<div key=${term} class=${freshness.isOld ? 'fact is-old' : 'fact'}>
          <dt>${term}</dt>
          <dd>${value}${unit ? html`<small>${unit}</small>` : ''}${freshness.isOld ? age(freshness) : ''}</dd>
        </div>`;
      })}
    </dl>
  </section>`;
}

/** @typedef {{ readonly term: string, readonly value: string, readonly unit: string, readonly feed: string | Freshness }} Figure `feed`: what its age is of, or that age */

/**
 * @param {Readonly<Record<string, FeedMessage>>} feeds
 * @param {readonly Figure[]} distance
 * @returns {readonly Figure[]}
 */
function figures({ sys_status, gps, vfr_hud, battery }, distance) {
  const mode = fieldOf(sys_status, 'flight_mode');
  const speed = numberOf(vfr_hud, 'groundspeed') ?? numberOf(gps, 'ground_speed');
  const climb = numberOf(vfr_hud, 'climb_mps');
  return [
    ...(typeof mode === 'string'
      ? [{ term: t.drone.mode, value: plain(mode), unit: '', feed: 'sys_status' }]
      : []),
    ...figure(t.drone.altitude, 'gps', numberOf(gps, 'relative_alt_m'), heightIn),
    ...figure(t.drone.speed, vfr_hud ? 'vfr_hud' : 'gps', speed, speedIn),
    ...figure(t.drone.climb, 'vfr_hud', climb, climbIn),
    ...distance,
    ...figure(t.drone.batteryTerm, 'battery', numberOf(battery, 'remaining_pct'), (value) => ({
      value,
      unit: '%',
      digits: 0,
    })),
  ];
}

/**
 * @param {string} term
 * @param {string | Freshness} feed
 * @param {number | undefined} value
 * @param {(value: number) => Measure} measure
 * @returns {readonly Figure[]}
 */
function figure(term, feed, value, measure) {
  if (value === undefined) return [];
  const { value: shown, unit, digits } = measure(value);
  return [{ term, feed, value: number(shown, digits), unit }];
}

/**
 * @param {number} mps
 * @returns {Measure}
 */
function climbIn(mps) {
  return speedIn(Math.abs(mps) < 0.05 ? 0 : mps);
}

/**
 * Why the autopilot would not let itself be armed, in its own words.
 * @param {Readonly<Record<string, FeedMessage>>} feeds
 * @param {unknown} ageView
 */
function reasons({ sys_status: status }, ageView) {
  const listed = [...listIn(fieldOf(status, 'pre_arm_reasons')), ...listIn(fieldOf(status, 'ekf_reasons'))];
  const isFailing = fieldOf(status, 'pre_arm_check') === false && fieldOf(status, 'armed') !== true;
  if (!isFailing && listed.length === 0) return '';
  return card(
    'pre-arm',
    t.drone.notReady,
    html`<ul class="rows reasons">
      ${(listed.length === 0 ? [t.drone.noReason] : listed).map((text) => html`<li class="state warn">${shape('warn')}<bdi>${plain(text)}</bdi></li>`)}
    </ul>`,
    ageView,
  );
}

/**
 * @param {LiveAsset} asset
 * @param {View} view
 */
function minutes(asset, view) {
  const { series } = view.world;
  const height = spark(series.get(`${asset.id} height`) ?? [], {
    what: t.drone.altitude,
    unit: 'm',
    low: 0,
    isAccent: true,
  });
  const battery = spark(series.get(`${asset.id} battery`) ?? [], {
    what: t.drone.batteryTerm,
    unit: '%',
    low: 0,
    top: 100,
  });
  const radio = spark(series.get(`${asset.id} radio`) ?? [], { what: t.drone.radio, unit: '' });
  const rows = [
    { term: t.drone.altitude, chart: height },
    { term: t.drone.batteryTerm, chart: battery },
    { term: t.drone.radio, chart: radio },
  ].filter(({ chart }) => chart !== '');
  if (rows.length === 0) return '';
  return card(
    'minutes',
    t.drone.minutes,
    html`<div class="lanes">${rows.map(({ term, chart }) => html`<span>${term}</span>${chart}`)}</div>`,
  );
}

/**
 * The buttons that must be in reach at any time: on a phone they stay at the bottom.
 * @param {LiveAsset} asset
 * @param {View} view
 * @param {string} kind
 */
function trayView(asset, view, kind) {
  const commands = view.world.commands.get(asset.id) ?? [];
  const shown = tray.flatMap((wanted) => commands.filter(({ name }) => name === wanted)).slice(0, 2);
  if (shown.length === 0) return '';
  const isLocked = lockAtAnyTime(view, asset) !== undefined;
  const showAll = () => document.querySelector('#commands')?.scrollIntoView({ block: 'start' });
  return html`<div class=${`tray ${kind}`} role="group" aria-label=${t.drone.tray}>
    ${shown.map((command) => {
      const ask = () => {
        if (isLocked) return;
        // They must work at once, also while a moment of the past is shown.
        view.choices.moment_ms = null;
        view.act.order({ asset, command, payload: {} });
      };
      return html`<button
        type="button"
        key=${command.name}
        class="btn"
        aria-disabled=${String(isLocked)}
        onClick=${ask}
      >
        ${command.name === 'return_home' ? icon('house', 's') : ''}${titleOf(command)}
      </button>`;
    })}
    <button type="button" class="btn only-phone" onClick=${showAll}>${t.commands.title}</button>
  </div>`;
}
