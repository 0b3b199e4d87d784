/** One row of an asset: what it is, its most important values (current ones first, then old ones), its state and age. */
import {
  assetState,
  freshness,
  isAssetReachable,
  lastMessageTime,
  feedFreshness,
  missingOf,
} from '../../world/age.ts';
import { duration, heightIn, locale, measureText } from '../../units.ts';
import { typesOf } from '../../world/history/log.ts';
import { addressOf } from '../../world/route.ts';
import { assetTree, fieldOf, numberOf } from '../../world/world.ts';
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import { icon, iconOfType } from '../parts/icon.ts';
import { age, ageText, card, name, state } from '../parts/marks.ts';
import { steady } from '../parts/steady.ts';
import type { LiveAsset, View } from '../../types.d.ts';
import { bearingText } from '../../world/geo.ts';
import { isRecord, own } from '../../json.ts';
import { placeOfAsset, placeOfKit } from '../../world/places.ts';
import { plain } from '../../world/text.ts';

const depth_max = 4;
const shown_max = 12;

/** The assets on the overview. */
export function assetsCard(view: View) {
  const { world, choices } = view;
  const rows = assetTree(world, () => true);
  const online = [...world.assets.values()].filter((asset) => assetState(asset, view) === 'online').length;
  const href = addressOf('assets', choices.kit_id);
  const content =
    rows.length === 0
      ? html`<p class="empty">${t.assets.none}</p>`
      : html`<ul class="rows assets">
            ${rows.slice(0, shown_max).map(({ asset, depth }) => assetRow(asset, depth, view))}
          </ul>
          ${rows.length > shown_max && html`<a class="btn plain more" href=${href}>${t.assets.all(rows.length)}</a>`}`;
  return card(
    'assets',
    html`<a href=${href}>${t.nav.assets}</a>`,
    content,
    html`<span class="cap"
      >${rows.length > 0 ? t.assets.online({ online, all: world.assets.size }) : ''}</span
    >`,
  );
}

/** The state of an asset as a word of the page. */
export function stateWord(asset: LiveAsset, view: View) {
  const now = assetState(asset, view);
  if (now === 'was online') return 'wasOnline';
  return now === 'online' && missingOf(asset).length > 0 ? 'degraded' : now;
}

type Row = ReturnType<typeof steady>;
const rows_kept: WeakMap<LiveAsset, { readonly by: readonly unknown[]; readonly row: Row }> = new WeakMap();
/** Rows far from the window, by the ids of their assets. */
const far: Set<string> = new Set();
const far_px = 400;
/** Ages of rows near the window are counted in seconds. */
const near_ms = 1_000;
const far_ms = 8_000;

/** The row is made again when something that it shows has changed, and for its ages; far from the window, only for these. */
export function assetRow(asset: LiveAsset, depth: number, view: View): Row {
  const { world, link, time_ms } = view;
  const isFar = far.has(asset.id);
  const feeds = isFar ? undefined : world.feeds.get(asset.id);
  const age_step = Math.floor(time_ms / (isFar ? far_ms : near_ms));
  const by = [isFar, feeds, world.kit?.online, link.state, depth, age_step, locale.now];
  const kept = rows_kept.get(asset);
  if (kept?.by.every((each, i) => each === by[i])) return kept.row;
  const row = newRow(asset, depth, view);
  rows_kept.set(asset, { by, row });
  return row;
}

let watched: IntersectionObserver | undefined;

/** Whether a row is near the window; one that comes near is drawn at the next draw. */
function watch(row: HTMLElement | null) {
  watched ??= new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        const id = target instanceof HTMLElement ? (target.dataset['asset'] ?? '') : '';
        if (isIntersecting || !target.isConnected) far.delete(id);
        else far.add(id);
        if (!target.isConnected) watched?.unobserve(target);
      }
    },
    { rootMargin: `${far_px}px` },
  );
  if (row) watched.observe(row);
}

function newRow(asset: LiveAsset, depth: number, view: View): Row {
  const { choices, world } = view;
  const { id, type } = asset;
  const seen = freshness(
    lastMessageTime(asset, world.feeds.get(id)),
    Number.POSITIVE_INFINITY,
    view,
    isAssetReachable(asset, view),
  );
  const facts = summaryOf(asset, view);
  const word = stateWord(asset, view);
  const row = `asset-row depth-${Math.min(depth, depth_max)}`;
  const href = addressOf('asset', choices.kit_id, id);
  const seenText = seen.age_ms === null ? null : ageText(seen.age_ms);
  const shown = [row, href, type, asset.name, facts, word, seenText, seen.isOld];
  const draw = () =>
    html`<li ref=${watch} data-asset=${id}>
      <a class=${row} href=${href}
        >${icon(iconOfType(type))}<span class="nm"
          ><b>${name(asset.name)}</b><span class="cap">${summaryView(facts)}</span></span
        >${state(word)}${age(seen)}</a
      >
    </li>`;
  return steady(shown, draw, id);
}

interface Fact {
  readonly text: string;
  readonly isOld: boolean;
}

interface Summary {
  readonly current: string;
  readonly old: string;
}

function summaryOf(asset: LiveAsset, view: View): Summary {
  const facts = [...feedFacts(asset, view), ...placeFacts(asset, view)];
  const current = facts.filter(({ isOld }) => !isOld).map(({ text }) => text);
  const old = facts.filter(({ isOld }) => isOld).map(({ text }) => text);
  const reason = asset.status === 'offline' && asset.status_reason ? [plain(asset.status_reason)] : [];
  const missing = missingOf(asset).map(({ item }) => t.health.missing[item]);
  const first = [...reason, ...missing, ...current];
  if (first.length === 0 && old.length === 0) first.push(modelOf(asset));
  return { current: first.join(', '), old: old.join(', ') };
}

function summaryView({ current, old }: Summary) {
  return html`<bdi>${current}</bdi
    >${old && html`<span class="was">${current && ', '}${t.was} <bdi>${old}</bdi></span>`}`;
}

function modelOf({ vendor, model, type }: LiveAsset): string {
  return plain([vendor, model].filter(Boolean).join(' ')) || (own(t.type, type) ?? plain(type));
}

function feedFacts(asset: LiveAsset, view: View): readonly Fact[] {
  const feeds = view.world.feeds.get(asset.id) ?? {};
  const texts = [...droneFacts(feeds), ...cameraFacts(feeds, view), ...radioFacts(feeds)];
  return texts.map(([feed, text]) => ({ text, isOld: feedFreshness(asset, feed, view).isOld }));
}

type Feeds = NonNullable<ReturnType<View['world']['feeds']['get']>>;
type Texts = readonly (readonly [feed: string, text: string])[];

function droneFacts({ sys_status, battery, gps }: Feeds): Texts {
  const mode = fieldOf(sys_status, 'flight_mode');
  const armed = fieldOf(sys_status, 'armed');
  const height_m = numberOf(gps, 'relative_alt_m');
  const remaining = numberOf(battery, 'remaining_pct');
  return [
    ...(typeof mode === 'string' ? [['sys_status', plain(mode)] as const] : []),
    ...(typeof armed === 'boolean'
      ? [['sys_status', armed ? t.drone.armed : t.drone.disarmed] as const]
      : []),
    ...(height_m !== undefined && armed === true ? [['gps', measureText(heightIn(height_m))] as const] : []),
    ...(remaining === undefined ? [] : [['battery', t.drone.battery(Math.round(remaining))] as const]),
  ];
}

function cameraFacts({ motion, ai_detection }: Feeds, { time_ms }: View): Texts {
  const seen = fieldOf(ai_detection, 'detected') === true ? typesOf(ai_detection?.data) : [];
  if (seen.length > 0) return [['ai_detection', seen.map((type) => plain(type)).join(', ')]];
  if (fieldOf(motion, 'detected') === true) return [['motion', t.camera.motion]];
  return motion ? [['motion', t.camera.quiet(duration(time_ms - Date.parse(motion.time)))]] : [];
}

function radioFacts({ mesh }: Feeds): Texts {
  const list = fieldOf(mesh, 'neighbours');
  if (!Array.isArray(list)) return [];
  const levels = list.flatMap((each) =>
    isRecord(each) && typeof each['rssi'] === 'number' ? [each['rssi']] : [],
  );
  return [
    ['mesh', t.radio.peers({ n: list.length, weakest: levels.length > 0 ? Math.min(...levels) : null })],
  ];
}

function placeFacts(asset: LiveAsset, view: View): readonly Fact[] {
  // The gateway is the kit: its distance is meaningless.
  if (asset.type === 'gateway') return [];
  const from = placeOfKit(view);
  const to = placeOfAsset(asset, view);
  return from && to ? [{ text: bearingText(from, to), isOld: to.isOld }] : [];
}
