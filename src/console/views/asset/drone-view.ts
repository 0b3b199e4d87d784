/** The page of a drone: map and instruments first, the last minutes, and what a pilot needs in one tap. */
import { feedFreshness } from '../../world/age.ts';
import { bearingOf } from '../../world/geo.ts';
import { field, listIn, own, textIn } from '../../json.ts';
import { levelOfVehicle } from '../../world/detections.ts';
import { failsafeText } from '../../world/history/log.ts';
import { breachOf, placeOfAsset, placeOfKit } from '../../world/places.ts';
import { label, plain } from '../../world/text.ts';
import { feedsThen, type FeedsThen } from '../../world/history/track.ts';
import { clock, distanceIn, heightIn, number, speedIn, type Measure } from '../../units.ts';
import { fieldOf, numberOf } from '../../world/world.ts';
import { t } from '../../words/words.ts';
import { lockAtAnyTime, titleOf } from '../command/about.ts';
import { emptyText } from '../history/range.ts';
import { mapBox } from '../map/map-box.ts';
import { html } from '../parts/html.ts';
import { icon, shape } from '../parts/icon.ts';
import { age, card, fact, isWideNow, name } from '../parts/marks.ts';
import { spark } from '../parts/spark.ts';
import { flyCard } from './fly.ts';
import { Video } from './video.ts';
import type { FeedMessage, Freshness, LiveAsset, View } from '../../types.d.ts';

/** `way`: what chooses the time of the track; `past`: the history. */
export interface Shared {
  readonly first: unknown;
  readonly way: unknown;
  readonly past: unknown;
  readonly commands: unknown;
  readonly rest: unknown;
}

/** What the instruments show. */
const shown_feeds = ['sys_status', 'attitude', 'gps', 'gps_raw', 'vfr_hud', 'battery', 'wind', 'rc'];

/** Lines over the map: more would cover it. */
const warnings_max = 3;
/** Commands with a separate button, where the drone has them; the first is the one that is wanted in need. */
const tray = ['return_home', 'hold', 'land'];

export function droneBody(asset: LiveAsset, view: View, { first, way, past, commands, rest }: Shared) {
  // On a phone it stands below the map, where a tap is answered in sight.
  const fly = flyCard(asset, view);
  const isWide = isWideNow();
  const feeds = view.world.feeds.get(asset.id) ?? {};
  const then = feedsThen(asset, shown_feeds, view);
  const ageNow = then ? '' : age(feedFreshness(asset, 'sys_status', view));
  return html`<div class="page aside drone">
      <div class="column main">
        ${first}
        <div class="cockpit">
          ${then ? instrumentsThen(then, view) : instruments(asset, view)}
          <div class="map-and-video">
            ${mapBox(view, { asset, isTall: true })}${videoCorner(asset)}${!then && warnings(asset, view)}
          </div>
        </div>
        ${!isWide && fly} ${way}
      </div>
      <div class="column">
        ${!isWide && !then && moreFigures(asset, view)} ${trayView(asset, view, 'card only-wide')}
        ${isWide && fly} ${reasons(then?.feeds ?? feeds, ageNow)} ${textsCard(asset, view)}
        ${minutes(asset, view)} ${commands}${past}${rest}
      </div>
    </div>
    ${trayView(asset, view, 'only-phone')}`;
}

function videoCorner({ whep_url, name: title }: LiveAsset) {
  return whep_url
    ? html`<div class="corner"><${Video} key=${whep_url} url=${whep_url} title=${plain(title)} /></div>`
    : '';
}

/** What the vehicle reports now, with how far it is from the kit. */
function figuresNow(asset: LiveAsset, view: View): readonly Figure[] {
  const kit = placeOfKit(view);
  const place = placeOfAsset(asset, view);
  const distance_m = kit && place ? bearingOf(kit, place).distance_m : undefined;
  const distance = figure(t.drone.fromKit, place ?? 'gps', distance_m, distanceIn);
  return figures(view.world.feeds.get(asset.id) ?? {}, distance);
}

function ageOf(asset: LiveAsset, view: View) {
  return (feed: string | Freshness) => (typeof feed === 'string' ? feedFreshness(asset, feed, view) : feed);
}

function instruments(asset: LiveAsset, view: View) {
  const feeds = view.world.feeds.get(asset.id) ?? {};
  return panel(feeds, figuresNow(asset, view), ageOf(asset, view));
}

/** Over the map of a phone: more would leave no room for it. The rest stands below. */
const figures_on_phone = 6;

function moreFigures(asset: LiveAsset, view: View) {
  const rest = figuresNow(asset, view).slice(figures_on_phone);
  if (rest.length === 0) return '';
  return html`<div key="more-figures" class="card pad">
    <dl class="facts small">
      ${rest.map(({ term, value, unit, feed }) => fact(term, `${value}\u00a0${unit}`, ageOf(asset, view)(feed)))}
    </dl>
  </div>`;
}

/** The same, as it was at the moment that is looked at. */
function instrumentsThen({ feeds, isLoading, fault }: FeedsThen, { choices }: View) {
  const list = figures(feeds, []);
  const isEmpty = list.length === 0 && !feeds['attitude'];
  return isLoading || isEmpty
    ? html`<section key="instruments" class="instruments" aria-label=${t.drone.instruments}>
        <p class="cap">${emptyText({ isLoading, fault })}</p>
      </section>`
    : panel(feeds, list, () => ({ age_ms: 0, isOld: false }), clock(choices.moment_ms ?? 0));
}

/** @param time of all values; empty: what is old is named below them */
function panel(
  feeds: Readonly<Record<string, FeedMessage>>,
  facts: readonly Figure[],
  freshnessOf: (feed: string | Freshness) => Freshness,
  time: string = '',
) {
  const roll = numberOf(feeds['attitude'], 'roll');
  const pitch = numberOf(feeds['attitude'], 'pitch');
  if (facts.length === 0 && roll === undefined) return '';
  const shown = facts.map((each) => ({ ...each, freshness: freshnessOf(each.feed) }));
  const old = shown.filter(({ freshness }) => freshness.isOld);
  const oldest_ms = Math.max(...old.map(({ freshness }) => freshness.age_ms ?? Number.POSITIVE_INFINITY));
  return html`<section key="instruments" class="instruments" aria-label=${t.drone.instruments}>
    ${roll !== undefined && pitch !== undefined ? horizon({ roll, pitch, isOld: freshnessOf('attitude').isOld }) : ''}
    <dl class="facts">
      ${
        time &&
        html`<div key="time" class="fact">
          <dt>${t.history.moment}</dt>
          <dd>${time}</dd>
        </div>`
      }
      ${shown.map(
        ({ term, value, unit, freshness }) =>
          html`<div key=${term} class=${freshness.isOld ? 'fact is-old' : 'fact'}>
            <dt>${term}</dt>
            <dd>${value}${unit ? html`<small>${unit}</small>` : ''}</dd>
          </div>`,
      )}
    </dl>
    ${
      old.length > 0 &&
      html`<p class="when-old">
        ${age({ isOld: true, age_ms: Number.isFinite(oldest_ms) ? oldest_ms : null })}${' '}
        ${old.length === shown.length ? t.drone.instruments : old.map(({ term }) => term).join(', ')}
      </p>`
    }
  </section>`;
}

/** A text of the vehicle is over the map for so long. */
const text_shown_ms = 60_000;
const texts_shown_max = 8;

interface VehicleText {
  readonly text: string;
  readonly time_ms: number;
  readonly level: 'bad' | 'warn' | 'info';
}

/** What the vehicle wrote, newest first. */
function textsOf(feeds: Readonly<Record<string, FeedMessage>>): readonly VehicleText[] {
  return listIn(fieldOf(feeds['messages'], 'messages'))
    .map((each) => {
      const severity = textIn(field(each, 'severity'));
      const isQuiet = ['notice', 'info', 'debug'].includes(severity);
      const level = isQuiet ? ('info' as const) : (levelOfVehicle('alarm', severity) ?? 'info');
      return {
        text: textIn(field(each, 'text')),
        time_ms: Date.parse(textIn(field(each, 'timestamp'))),
        level,
      };
    })
    .sort((a, b) => b.time_ms - a.time_ms);
}

/** A vehicle that shows one of these is in trouble, also where it does not report which. */
const states_bad: ReadonlySet<string> = new Set(['CRITICAL', 'EMERGENCY', 'FLIGHT_TERMINATION']);

/** Over the map: what a pilot must not miss, the worst first. */
function warnings(asset: LiveAsset, view: View) {
  const feeds = view.world.feeds.get(asset.id) ?? {};
  const { sys_status, failsafe } = feeds;
  const breach = breachOf(asset.id, view);
  const isActive = fieldOf(failsafe, 'detected') === true;
  const status = textIn(fieldOf(sys_status, 'system_status'));
  const ekf = fieldOf(sys_status, 'armed') === true ? listIn(fieldOf(sys_status, 'ekf_reasons')) : [];
  const lines = [
    ...(isActive ? [{ level: 'bad', text: failsafeText(failsafe?.data) }] : []),
    ...(!isActive && states_bad.has(status)
      ? [{ level: 'bad', text: `${label('system_status')}: ${status}` }]
      : []),
    ...(breach === undefined
      ? []
      : [{ level: 'warn', text: t.fly.breached(own(t.fly.breach, breach) ?? label(breach)) }]),
    ...ekf.map((text) => ({ level: 'warn', text: plain(text) })),
    ...textsOf(feeds).filter(({ time_ms }) => view.time_ms - time_ms < text_shown_ms),
  ];
  return html`<div class="map-says" role="status">
    ${lines.slice(0, warnings_max).map(({ level, text }) => html`<p key=${text} class=${`state ${level}`}>${shape(level === 'info' ? 'ring' : 'warn')}${name(text)}</p>`)}
  </div>`;
}

/** What the vehicle wrote, with its times. */
function textsCard(asset: LiveAsset, view: View) {
  const texts = textsOf(view.world.feeds.get(asset.id) ?? {}).slice(0, texts_shown_max);
  if (texts.length === 0) return '';
  return card(
    'texts',
    t.drone.texts,
    html`<ul class="rows">
      ${texts.map(
        ({ text, time_ms, level }) =>
          html`<li key=${`${time_ms} ${text}`} class="event">
            <time>${clock(time_ms, { isExact: true })}</time
            ><span class=${`state ${level}`}>${shape(level === 'info' ? 'ring' : 'warn')}</span
            ><span>${name(text)}</span>
          </li>`,
      )}
    </ul>`,
  );
}

/** `feed`: what its age is of, or that age. */
interface Figure {
  readonly term: string;
  readonly value: string;
  readonly unit: string;
  readonly feed: string | Freshness;
}

function figures(
  { sys_status, gps, gps_raw, vfr_hud, battery, wind, rc }: Readonly<Record<string, FeedMessage>>,
  distance: readonly Figure[],
): readonly Figure[] {
  const mode = fieldOf(sys_status, 'flight_mode');
  const speed = numberOf(vfr_hud, 'groundspeed') ?? numberOf(gps, 'ground_speed');
  const climb = numberOf(vfr_hud, 'climb_mps');
  const fix = t.drone.fixes[numberOf(gps_raw, 'fix_type') ?? -1] ?? '';
  return [
    ...(typeof mode === 'string'
      ? [{ term: t.drone.mode, value: plain(mode), unit: '', feed: 'sys_status' }]
      : []),
    ...figure(t.drone.altitude, 'gps', numberOf(gps, 'relative_alt_m'), heightIn),
    ...figure(t.drone.speed, vfr_hud ? 'vfr_hud' : 'gps', speed, speedIn),
    ...figure(t.drone.batteryTerm, 'battery', numberOf(battery, 'remaining_pct'), as('%')),
    ...figure(t.drone.satellites, 'gps_raw', numberOf(gps_raw, 'satellites_visible'), as(fix)),
    ...distance,
    ...figure(t.drone.voltage, 'battery', numberOf(battery, 'voltage'), as('V', 1)),
    ...figure(t.drone.fromHome, 'gps', numberOf(gps, 'home_distance_m'), distanceIn),
    ...windFigure(wind),
    ...figure(t.drone.flightTime, 'sys_status', numberOf(sys_status, 'flight_time_s'), (value) => ({
      value: value / 60,
      unit: 'min',
      digits: 1,
    })),
    ...figure(t.drone.rc, 'rc', numberOf(rc, 'rssi_pct'), as('%')),
    ...figure(t.drone.climb, 'vfr_hud', climb, climbIn),
  ];
}

/** Speed, and where it comes from. */
function windFigure(wind: FeedMessage | undefined): readonly Figure[] {
  const from = numberOf(wind, 'direction');
  return figure(t.drone.wind, 'wind', numberOf(wind, 'speed_mps'), (mps) => {
    const measure = speedIn(mps);
    return from === undefined ? measure : { ...measure, unit: `${measure.unit} ${Math.round(from)}°` };
  });
}

function figure(
  term: string,
  feed: string | Freshness,
  value: number | undefined,
  measure: (value: number) => Measure,
): readonly Figure[] {
  if (value === undefined) return [];
  const { value: shown, unit, digits } = measure(value);
  return [{ term, feed, value: number(shown, digits), unit }];
}

/** A number with the unit in which it is reported. */
function as(unit: string, digits: number = 0) {
  return (value: number): Measure => ({ value, unit, digits });
}

function climbIn(mps: number): Measure {
  return speedIn(Math.abs(mps) < 0.05 ? 0 : mps);
}

/** Why the autopilot would not let itself be armed, in its own words. */
function reasons({ sys_status: status }: Readonly<Record<string, FeedMessage>>, ageView: unknown) {
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

function minutes(asset: LiveAsset, view: View) {
  const { series } = view.world;
  const lane = (key: string, what: string, about: Partial<Parameters<typeof spark>[1]>) => ({
    term: what,
    chart: spark(series.get(`${asset.id} ${key}`) ?? [], { what, unit: '', ...about }),
  });
  const rows = [
    lane('height', t.drone.altitude, { unit: 'm', low: 0, isAccent: true }),
    lane('battery', t.drone.batteryTerm, { unit: '%', low: 0, top: 100 }),
    lane('radio', t.drone.radio, {}),
  ].filter(({ chart }) => chart !== '');
  if (rows.length === 0) return '';
  return card(
    'minutes',
    t.drone.minutes,
    html`<div class="lanes">${rows.map(({ term, chart }) => html`<span>${term}</span>${chart}`)}</div>`,
  );
}

/** The buttons that must be in reach at any time: on a phone they stay at the bottom. */
function trayView(asset: LiveAsset, view: View, kind: string) {
  const commands = view.world.commands.get(asset.id) ?? [];
  const shown = tray.flatMap((wanted) => commands.filter((command) => command.name === wanted)).slice(0, 2);
  if (shown.length === 0) return '';
  const isLocked = lockAtAnyTime(view, asset) !== undefined;
  const showAll = () => document.querySelector('#commands')?.scrollIntoView({ block: 'start' });
  return html`<div class=${`tray ${kind}`} role="group" aria-label=${t.drone.tray}>
    ${shown.map((command, i) => {
      const ask = () => {
        if (isLocked) return;
        // They must work at once, also while a moment of the past is shown.
        view.choices.moment_ms = null;
        view.act.order({ asset, command, payload: {} });
      };
      return html`<button
        type="button"
        key=${command.name}
        class=${i === 0 ? 'btn main' : 'btn'}
        aria-disabled=${String(isLocked)}
        onClick=${ask}
      >
        ${command.name === 'return_home' && kind !== 'only-phone' ? icon('house', 's') : ''}${titleOf(command)}
      </button>`;
    })}
    <button type="button" class="btn only-phone" onClick=${showAll}>${t.commands.title}</button>
  </div>`;
}

/** Units of the picture for one degree of pitch. */
const per_degree = 1.5;

/** The artificial horizon, of degrees; pitch positive: nose up. */
function horizon({
  roll,
  pitch,
  isOld,
}: {
  readonly roll: number;
  readonly pitch: number;
  readonly isOld: boolean;
}) {
  const shown = Math.max(-40, Math.min(40, pitch));
  return html`<svg
    class=${isOld ? 'horizon old' : 'horizon'}
    viewBox="-50 -50 100 100"
    role="img"
    aria-label=${t.drone.attitude({ roll: Math.round(roll), pitch: Math.round(pitch) })}
  >
    <defs>
      <clipPath id="horizon-clip"><circle r="46" /></clipPath>
    </defs>
    <g clip-path="url(#horizon-clip)">
      <g transform=${`rotate(${(-roll).toFixed(1)}) translate(0 ${(shown * per_degree).toFixed(1)})`}>
        <rect class="sky" x="-100" y="-160" width="200" height="160" />
        <rect class="earth" x="-100" width="200" height="160" />
        <path class="line" d="M-100 0H100" />
        ${[-20, -10, 10, 20].map((degrees) => html`<path key=${degrees} class="bar-line" d=${`M${degrees % 20 === 0 ? -15 : -9} ${-degrees * per_degree}h${degrees % 20 === 0 ? 30 : 18}`} />`)}
      </g>
    </g>
    <circle class="rim" r="46" />
    <path class="wings-edge" d="M-26 0H-11L-6 6M26 0H11L6 6" />
    <path class="wings" d="M-26 0H-11L-6 6M26 0H11L6 6" />
    <circle class="dot" r="2.6" />
    <path class="roll" d="M0-46l4.5 8h-9Z" transform=${`rotate(${(-roll).toFixed(1)})`} />
  </svg>`;
}
