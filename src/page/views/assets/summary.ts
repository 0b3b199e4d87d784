/** The most important values of an asset in one line: current values first, then old ones. */
import { duration, feedFreshness } from '../../world/age.ts';
import { bearingText } from '../../world/geo.ts';
import { isRecord, own } from '../../world/json.ts';
import { placeOfAsset, placeOfKit } from '../../world/places.ts';
import { plain } from '../../world/text.ts';
import { heightIn, measureText } from '../../world/units.ts';
import { fieldOf, numberOf } from '../../world/world.ts';
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import type { LiveAsset, View } from '../../types.d.ts';

interface Fact {
  readonly text: string;
  readonly isOld: boolean;
}

interface Summary {
  readonly current: string;
  readonly old: string;
}

export function summaryOf(asset: LiveAsset, view: View): Summary {
  const facts = [...feedFacts(asset, view), ...placeFacts(asset, view)];
  const current = facts.filter(({ isOld }) => !isOld).map(({ text }) => text);
  const old = facts.filter(({ isOld }) => isOld).map(({ text }) => text);
  const reason = asset.status === 'offline' && asset.status_reason ? [plain(asset.status_reason)] : [];
  const first = [...reason, ...current];
  if (first.length === 0 && old.length === 0) first.push(modelOf(asset));
  return { current: first.join(', '), old: old.join(', ') };
}

export function summaryView({ current, old }: Summary) {
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
  const types = fieldOf(ai_detection, 'types');
  const seen = Array.isArray(types) && fieldOf(ai_detection, 'detected') === true ? types.map(String) : [];
  const facts: (readonly [string, string])[] = [];
  if (seen.length > 0)
    facts.push(['ai_detection', seen.map((type) => own(t.seen, type) ?? plain(type)).join(', ')]);
  else if (fieldOf(motion, 'detected') === true) facts.push(['motion', t.camera.motion]);
  else if (motion) facts.push(['motion', t.camera.quiet(duration(time_ms - Date.parse(motion.time)))]);
  return facts;
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
