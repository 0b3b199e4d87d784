/** What is drawn over the base map, or alone: rings, tracks, marks, fence, home, target. */
import { assetState } from '../../world/age.ts';
import { duration, distanceText } from '../../units.ts';
import { bearingText, project, roundDown } from '../../world/geo.ts';
import {
  headingOf,
  placeOfAsset,
  placeOfKit,
  type KnownPlace,
  homeOf,
  targetOf,
} from '../../world/places.ts';
import { addressOf } from '../../world/route.ts';
import { placeAt, trackNow } from '../../world/history/track.ts';
import { plain } from '../../world/text.ts';
import { fixOf } from '../../world/world.ts';
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import type { Fix, LiveAsset, View } from '../../types.d.ts';
import { townsBeyond } from './ground.ts';
import { char_px, type Frame, type Mercator } from './frame.ts';

const rings_max = 5;
const same_px = 12;
const label_chars_max = 18;
const first_strong_isolate = String.fromCodePoint(0x20_68);
const pop_isolate = String.fromCodePoint(0x20_69);

/** @param asset the asset that the map shows */
export function overlay(view: View, frame: Mercator, asset: LiveAsset | undefined) {
  const kit = placeOfKit(view);
  const kitAt = kit && frame.toPicture(kit);
  const located = [...view.world.assets.values()].flatMap((each) => {
    const place = placeOfAsset(each, view);
    const at = place && frame.toPicture(place);
    // The gateway stands where the kit is, and has its mark.
    const isKit =
      each.type === 'gateway' && kitAt && at && Math.hypot(at[0] - kitAt[0], at[1] - kitAt[1]) < same_px;
    return at && !isKit ? [{ asset: each, place, at }] : [];
  });
  const visible = located.filter(
    ({ at: [x, y] }) => x > -20 && y > -20 && x < frame.w + 20 && y < frame.h + 20,
  );
  // So many marks would be a black block: those that stand together are one, which opens to them.
  const groups =
    visible.length > clustered_from
      ? groupsOf(visible, (each) => (each.asset.id === asset?.id ? 0 : cluster_px))
      : visible.map((each) => [each]);
  const shown = groups.flatMap((group) => (group.length === 1 ? group : []));
  const crowds = crowdsOf(shown.map(({ at }) => at));
  const wanted: readonly Wanted[] = [
    ...(kit ? [wantedOf(frame.toPicture(kit), t.map.kit, oldText(kit), 1)] : []),
    ...(kit ? ringsOf(kit, frame) : []),
    ...townsBeyond(frame).map(({ x, y, text }) => ({ x, y, text, sub: '', rank: 10, isFixed: true })),
    ...shown.map(({ asset: each, place, at }, i) =>
      wantedOf(
        at,
        shortName(each.name) + moreText(crowds[i]?.covered.length ?? 0),
        oldText(place),
        each.id === asset?.id ? 0 : each.type === 'drone' ? 2 : 3,
      ),
    ),
  ];
  const placed = placeLabels(wanted, frame);
  const first = wanted.length - shown.length;
  const labels = wanted.map(({ text, sub, isFixed }, i) => {
    const at = placed[i];
    const named = shown[i - first];
    // Others that are covered and have a name on the map need not be counted.
    const unnamed = crowds[i - first]?.covered.filter((other) => !placed[first + other]).length ?? 0;
    return (
      at &&
      html`<text
        key=${`label ${i}`}
        class=${isFixed ? 'q' : sub === '' ? '' : 'old'}
        x=${at.x}
        y=${at.y}
        text-anchor=${at.anchor}
        >${isolated(named ? shortName(named.asset.name) + moreText(unnamed) : text)}${sub && html`<tspan x=${at.x} dy="15">${sub}</tspan>`}</text
      >`
    );
  });
  return html`
    ${kit && rings(kit, frame)} ${asset && home(asset, view, frame)} ${asset && track(asset, frame, view)}
    ${located.map(({ asset: each }) => trail(each, frame, view))} ${asset && target(asset, view, frame)}
    ${shown.map(({ asset: each, place, at }, i) => assetMark(each, { place, at, isTight: crowds[i]?.isTight === true }, view))}
    ${groups.map((group) => group.length > 1 && clusterMark(group, view))} ${kit && kitMark(kit, frame)}
    ${labels} ${scaleBar(frame)}
  `;
}

/** More marks are drawn as clusters. */
const clustered_from = 60;
const cluster_px = 30;

/**
 * Those that stand together, each group at the place of its first.
 * @param nearOf pixels within which others belong to it; 0: it stands alone
 */
export function groupsOf<T extends { readonly at: readonly [x: number, y: number] }>(
  all: readonly T[],
  nearOf: (each: T) => number,
): readonly (readonly T[])[] {
  const groups: T[][] = [];
  for (const each of all) {
    const { at } = each;
    const group = groups.find(([first]) => {
      const near_px = first ? Math.min(nearOf(first), nearOf(each)) : 0;
      return first && Math.hypot(first.at[0] - at[0], first.at[1] - at[1]) < near_px;
    });
    if (group) group.push(each);
    else groups.push([each]);
  }
  return groups;
}

function clusterMark(
  group: readonly {
    readonly asset: LiveAsset;
    readonly place: KnownPlace;
    readonly at: readonly [number, number];
  }[],
  { choices, act }: View,
) {
  const [first] = group;
  if (!first) return '';
  const open = (event: Event) => {
    event.preventDefault();
    const { lat, lon } = first.place;
    act.choose({ map: { zoom: choices.map.zoom + 2, center: null, pan: { lat, lon } } });
  };
  return html`<a
    key=${`cluster ${first.asset.id}`}
    class="mark cluster"
    href="#"
    tabindex="-1"
    aria-label=${t.map.together(group.length)}
    transform=${`translate(${first.at[0]} ${first.at[1]})`}
    onClick=${open}
    ><circle class="touch" r="22" /><circle class="ring-mark" r="14" /><text
      class="q"
      aria-hidden="true"
      y="4.5"
      text-anchor="middle"
      >${group.length}</text
    ></a
  >`;
}

function wantedOf([x, y]: readonly [number, number], text: string, sub: string, rank: number): Wanted {
  return { x, y, text, sub, rank };
}

function ringStep({ w, h, m_per_px }: Frame) {
  return roundDown((Math.min(w, h) / 2) * m_per_px * 0.62);
}

/** The labels of the rings, at their tops. */
function ringsOf(kit: KnownPlace, frame: Frame): readonly Wanted[] {
  const [x, y] = frame.toPicture(kit);
  const step_m = ringStep(frame);
  return Array.from({ length: rings_max }, (_, i) => {
    const m = step_m * (i + 1);
    return { x, y: y - m / frame.m_per_px, text: distanceText(m), sub: '', rank: 9, isFixed: true };
  });
}

function rings(kit: KnownPlace, frame: Frame) {
  const [x, y] = frame.toPicture(kit);
  const step_m = ringStep(frame);
  return html`<g key="rings" class="ring">
    ${Array.from({ length: rings_max }, (_, i) => html`<circle key=${i} cx=${x} cy=${y} r=${((step_m * (i + 1)) / frame.m_per_px).toFixed(1)} />`)}
  </g>`;
}

export function scaleBar({ h, m_per_px }: Frame) {
  const m = roundDown(110 * m_per_px);
  const width = (m / m_per_px).toFixed(1);
  return html`<g class="scale" transform=${`translate(14 ${h - 14})`}>
    <path d=${`M0-5V0H${width}V-5`} /><text class="q" x=${Number(width) + 8} y="2">${distanceText(m)}</text>
  </g>`;
}

/** The home position of a drone, where it reports it. */
function home(asset: LiveAsset, view: View, frame: Frame) {
  const place = homeOf(asset.id, view);
  if (!place) return '';
  const [x, y] = frame.toPicture(place);
  return html`<path key="home" class="home" d=${`M${x - 9} ${y + 1}l9-9 9 9M${x - 6} ${y - 1}v9h12v-9`} />`;
}

/** The path of the last minutes, thicker where it is newer. */
function trail(asset: LiveAsset, frame: Frame, view: View) {
  const newest = fixOf(view.world.feeds.get(asset.id)?.['gps']);
  const fixes = [...(view.world.trails.get(asset.id) ?? []), ...(newest ? [newest] : [])];
  if (fixes.length < 2) return '';
  const third = Math.ceil(fixes.length / 3);
  return html`<g key=${`trail ${asset.id}`} class="trail">
    ${[0, 1, 2].map((i) => html`<polyline key=${i} class=${`part-${i}`} points=${line(fixes.slice(i * third, (i + 1) * third + 1), frame)} />`)}
  </g>`;
}

/** The way in the time that is shown, and where the asset was at the moment that is looked at. */
function track(asset: LiveAsset, frame: Frame, view: View) {
  const { moment_ms } = view.choices;
  const lines = trackNow(asset, view)?.track ?? [];
  const past = moment_ms === null ? undefined : placeAt(lines, moment_ms);
  const at = past && frame.toPicture(past);
  return html`<g key="track" class="track">
    ${lines.map((fixes, i) => html`<polyline key=${i} points=${line(fixes, frame)} />`)}
    ${at && html`<g class="past-mark" transform=${`translate(${at[0]} ${at[1]})`}><circle r="9" /><circle class="dot" r="3" /></g>`}
  </g>`;
}

function line(fixes: readonly Fix[], frame: Frame) {
  return fixes.map((fix) => frame.toPicture(fix).join(',')).join(' ');
}

function target(asset: LiveAsset, view: View, frame: Frame) {
  const found = targetOf(asset, view);
  if (!found) return '';
  const [x, y] = frame.toPicture(found.target);
  const [fx, fy] = frame.toPicture(found.from);
  return html`<g key="target" class="aim">
    <path class="way" d=${`M${fx} ${fy}L${x} ${y}`} />
    <g transform=${`translate(${x} ${y})`}>
      <circle r="13" /><path d="M0-19V-7M0 7V19M-19 0H-7M7 0H19" /><circle class="dot" r="2.4" />
      <text y="38" text-anchor="middle">${bearingText(found.from, found.target)}</text>
    </g>
  </g>`;
}

function kitMark(kit: KnownPlace, frame: Frame) {
  const [x, y] = frame.toPicture(kit);
  return html`<g
    key="kit"
    class=${kit.isOld ? 'mark kit old' : 'mark kit'}
    transform=${`translate(${x} ${y})`}
  >
    <rect x="-9" y="-9" width="18" height="18" rx="4" /><path
      d="M-3.5 2.5a5 5 0 0 1 0-5M3.5 2.5a5 5 0 0 0 0-5"
    /><circle r="1.7" />
  </g>`;
}

/**
 * A ring for what stands, an arrow for what moves; dashed: offline, or its position is old. It is never removed.
 * @param about `isTight`: others stand close
 */
function assetMark(
  asset: LiveAsset,
  {
    place,
    at: [x, y],
    isTight,
  }: { readonly place: KnownPlace; readonly at: readonly [number, number]; readonly isTight: boolean },
  view: View,
) {
  const isOld = place.isOld || assetState(asset, view) !== 'online';
  const heading = headingOf(asset, view);
  const shape =
    heading === undefined
      ? html`<circle class="ring-mark" r="7" />`
      : html`<path class="arrow" d="M0-14 10 11 0 6-10 11Z" transform=${`rotate(${Math.round(heading)})`} />`;
  return html`<a
    key=${asset.id}
    class=${isOld ? 'mark old' : 'mark'}
    href=${addressOf('asset', view.choices.kit_id, asset.id)}
    tabindex="-1"
    aria-label=${plain(asset.name)}
    transform=${`translate(${x} ${y})${isTight ? ' scale(.7)' : ''}`}
    ><circle class="touch" r="22" />${shape}</a
  >`;
}

/** How many marks a mark covers, beside its name. */
function moreText(n: number) {
  return n === 0 ? '' : ` +${n}`;
}

function oldText({ isOld, age_ms }: KnownPlace) {
  return isOld ? (age_ms === null ? t.age.unknown : t.age.old(duration(age_ms))) : '';
}

function shortName(text: string) {
  const shown = plain(text);
  return shown.length > label_chars_max ? `${shown.slice(0, label_chars_max - 1)}…` : shown;
}

/** Isolates the text direction of a name; SVG has no element for it. */
function isolated(text: string) {
  return `${first_strong_isolate}${text}${pop_isolate}`;
}

/** How far the farthest asset is, for the description of the map. */
export function mapSummary(view: View) {
  const kit = placeOfKit(view);
  const located = [...view.world.assets.values()].flatMap((asset) => placeOfAsset(asset, view) ?? []);
  const far_m = kit ? Math.max(0, ...located.map((place) => Math.hypot(...project(kit, place)))) : 0;
  return t.map.summary({ isKitKnown: kit !== undefined, assets: located.length, far: distanceText(far_m) });
}

interface Wanted {
  readonly x: number;
  readonly y: number;
  readonly text: string;
  readonly sub: string;
  readonly rank: number;
  readonly isFixed?: boolean;
}
interface Placed {
  readonly x: number;
  readonly y: number;
  readonly anchor: 'start' | 'middle' | 'end';
}
type Box = readonly [left: number, top: number, right: number, bottom: number];

const line_px = 16;
const mark_px = 10;
const edge_px = 4;

/** The place of each label, undefined where there is no room; the lowest rank chooses first. */
export function placeLabels(
  wanted: readonly Wanted[],
  { w, h }: { readonly w: number; readonly h: number },
): readonly (Placed | undefined)[] {
  const taken: Box[] = wanted.map(({ x, y, isFixed }) =>
    isFixed ? [x, y, x, y] : [x - mark_px, y - mark_px, x + mark_px, y + mark_px],
  );
  const placed: (Placed | undefined)[] = wanted.map(() => undefined);
  const order = wanted.map((_, i) => i).sort((a, b) => (wanted[a]?.rank ?? 0) - (wanted[b]?.rank ?? 0));
  for (const i of order) {
    const label = wanted[i];
    if (!label) continue;
    for (const { at, box } of spotsOf(label)) {
      const isIn = box[0] >= edge_px && box[1] >= edge_px && box[2] <= w - edge_px && box[3] <= h - edge_px;
      if (!isIn || taken.some((other, n) => n !== i && overlaps(box, other))) continue;
      placed[i] = at;
      taken.push(box);
      break;
    }
  }
  return placed;
}

/** Right, left, below, above; only on the point itself, for the labels of rings. */
function spotsOf({
  x,
  y,
  text,
  sub,
  isFixed,
}: Wanted): readonly { readonly at: Placed; readonly box: Box }[] {
  const wide = Math.max(text.length, sub.length) * char_px;
  const high = sub === '' ? line_px : 2 * line_px;
  const gap = mark_px + 4;
  if (isFixed)
    return [{ at: { x, y: y + 4, anchor: 'middle' }, box: [x - wide / 2, y - 8, x + wide / 2, y + 8] }];
  return [
    { at: { x: x + gap, y: y + 4.5, anchor: 'start' }, box: [x + gap, y - 8, x + gap + wide, y - 8 + high] },
    { at: { x: x - gap, y: y + 4.5, anchor: 'end' }, box: [x - gap - wide, y - 8, x - gap, y - 8 + high] },
    {
      at: { x, y: y + gap + 11, anchor: 'middle' },
      box: [x - wide / 2, y + gap, x + wide / 2, y + gap + high],
    },
    {
      at: { x, y: y - gap - high + 12, anchor: 'middle' },
      box: [x - wide / 2, y - gap - high, x + wide / 2, y - gap],
    },
  ];
}

function overlaps(a: Box, b: Box) {
  return a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
}

/** Nearer than this, marks of full size touch. */
const tight_px = 20;
/** Nearer than this, one mark hides the other. */
const covered_px = 6;

/** `covered`: the places of the others that the mark hides or is hidden by. */
interface Crowd {
  isTight: boolean;
  covered: readonly number[];
}

/** For each mark, what stands near it. */
export function crowdsOf(places: readonly (readonly [x: number, y: number])[]): readonly Crowd[] {
  const crowds: readonly { isTight: boolean; covered: number[] }[] = places.map(() => ({
    isTight: false,
    covered: [],
  }));
  const order = places.map((_, i) => i).sort((a, b) => (places[a]?.[0] ?? 0) - (places[b]?.[0] ?? 0));
  for (const [n, i] of order.entries()) {
    const [x, y] = places[i] ?? [0, 0];
    for (let k = n + 1; k < order.length; k += 1) {
      const j = order[k] ?? 0;
      const [other_x, other_y] = places[j] ?? [0, 0];
      if (other_x - x >= tight_px) break;
      const apart_px = Math.hypot(other_x - x, other_y - y);
      if (apart_px >= tight_px) continue;
      for (const [one, other] of [
        [i, j],
        [j, i],
      ] as const) {
        const crowd = crowds[one];
        if (!crowd) continue;
        crowd.isTight = true;
        if (apart_px < covered_px) crowd.covered.push(other);
      }
    }
  }
  return crowds;
}
