/** The page of one asset: its first part by type, then commands, tasks and all values. */
import { own } from '../../world/json.ts';
import { assetState, duration, isAssetReachable } from '../../world/age.ts';
import { placeText } from '../../world/geo.ts';
import { placeOfAsset } from '../../world/places.ts';
import { addressOf } from '../../world/route.ts';
import { plain } from '../../world/text.ts';
import { clock, heightIn, measureText } from '../../world/units.ts';
import { fieldOf } from '../../world/world.ts';
import { t } from '../../words/words.ts';
import { assetRow, stateWord } from '../assets/asset-row.ts';
import { commandsCard, commandSheet } from '../command/command-view.ts';
import { taskRow } from '../command/task-row.ts';
import { hasTrack, historyCard } from '../history/asset-history.ts';
import { pastBox, rangeChips } from '../history/range.ts';
import { trackBar } from '../history/track-bar.ts';
import { lostBox } from '../overview/overview-view.ts';
import { copy } from '../parts/copy.ts';
import { mapBox } from '../map/map-box.ts';
import { html } from '../parts/html.ts';
import { icon } from '../parts/icon.ts';
import { card, fact, name, state } from '../parts/marks.ts';
import { isWideNow } from '../parts/wide.ts';
import { cameraBody } from './camera-view.ts';
import { droneBody, type Shared } from './drone-view.ts';
import { feedsCard } from './feeds-view.ts';
import { metadataCard } from './metadata-view.ts';
import { radioBody } from './radio-view.ts';
import type { LiveAsset, View } from '../../types.d.ts';

const tasks_shown_max = 5;

export function assetScreen(view: View) {
  const { route, world, choices } = view;
  const back = addressOf('assets', choices.kit_id);
  const asset = world.assets.get(route.asset_id ?? '');
  if (!asset) {
    return {
      heading: { title: t.asset.unknown, back },
      body: html`<div class="page">
        <p class="empty">${t.asset.unknownWhy}</p>
        <a class="btn" href=${back}>${t.asset.toAll}</a>
      </div>`,
    };
  }
  const isFlying =
    asset.type === 'drone' &&
    isAssetReachable(asset, view) &&
    fieldOf(world.feeds.get(asset.id)?.['sys_status'], 'armed') === true;
  return {
    heading: {
      title: name(asset.name),
      sub: makerOf(asset),
      back,
      pill: state(isFlying ? 'flying' : stateWord(asset, view), { isPill: true }),
    },
    body: html`${bodyOf(asset, view)} ${commandSheet(asset, view)}`,
  };
}

function bodyOf(asset: LiveAsset, view: View) {
  const shared = {
    first: html`${lostBox(view)}${pastBox(view)}${offlineBox(asset, view)}`,
    way: trackBar(asset, view),
    past: html`${hasTrack(asset) ? '' : rangeChips(view)}${historyCard(asset, view)}`,
    commands: commandsCard(asset, view),
    rest: html`${tasksCard(asset, view)}${childrenCard(asset, view)}${aboutCard(asset, view)}${metadataCard(asset, view)}${feedsCard(asset, view)}`,
  };
  if (asset.type === 'drone' && asset.protocol !== 'partner') return droneBody(asset, view, shared);
  if (asset.type === 'camera' || asset.whep_url) return cameraBody(asset, view, shared);
  if (asset.type === 'radio') return radioBody(asset, view, shared);
  return otherBody(asset, view, shared);
}

/** Where there is room, the history lies below the map instead of below the commands. */
function otherBody(asset: LiveAsset, view: View, { first, past, commands, rest }: Shared) {
  const isWide = isWideNow();
  return html`<div class="page aside">
    <div class="column">${first}${aboutFirst(asset, view)}${isWide && past}</div>
    <div class="column">${commands}${!isWide && past}${rest}</div>
  </div>`;
}

function makerOf({ vendor, model, protocol }: LiveAsset): unknown {
  const maker = [vendor, model].filter(Boolean).join(' ');
  return maker === '' ? plain(protocol) : name(maker);
}

/** Why the asset is offline, and since when. */
function offlineBox(asset: LiveAsset, view: View) {
  if (assetState(asset, view) !== 'offline') return '';
  const time_ms = Date.parse(asset.last_seen_at);
  const text = t.attention.lastSeen({
    time_ms,
    age_ms: view.time_ms - time_ms,
    reason: asset.status_reason ?? '',
  });
  return html`<section key="offline" class="card notice">
    <b>${t.state.offline}</b><span>${name(text)}</span>
  </section>`;
}

/** Assets without a special page begin with where they are. */
function aboutFirst(asset: LiveAsset, view: View) {
  const place = placeOfAsset(asset, view);
  return place
    ? html`${mapBox(view, { asset, isTall: false })}${hasTrack(asset) && trackBar(asset, view)}`
    : '';
}

function aboutCard(asset: LiveAsset, view: View) {
  const { vendor, model, protocol, last_seen_at } = asset;
  const maker = [vendor, model].filter(Boolean).join(' ');
  const place = placeOfAsset(asset, view);
  const text = place ? placeText(place) : '';
  const copyPlace = () => view.act.note(copy(text) ? t.asset.copied : t.asset.notCopied);
  const seen_ms = Date.parse(last_seen_at);
  const copyButton = html`<button
    type="button"
    class="icon-btn"
    aria-label=${t.asset.copy}
    onClick=${copyPlace}
  >
    ${icon('copy', 's')}
  </button>`;
  return card(
    'about',
    t.asset.about,
    html`<dl class="facts small pad">
      ${fact(t.asset.model, maker === '' ? t.notReported : name(maker))}
      ${fact(t.asset.protocol, plain(protocol))}
      ${fact(t.asset.type, own(t.type, asset.type) ?? plain(asset.type))}
      ${fact(t.asset.lastSeen, `${clock(seen_ms, { isExact: true })} (${duration(view.time_ms - seen_ms)})`)}
      ${fact(t.asset.position, text === '' ? t.notReported : html`<span class="place">${text}</span>${copyButton}`, place)}
      ${place && typeof asset.alt_m === 'number' ? fact(t.asset.altitude, t.asset.aboveEllipsoid(measureText(heightIn(asset.alt_m)))) : ''}
    </dl>`,
  );
}

function tasksCard(asset: LiveAsset, view: View) {
  const tasks = [...view.world.tasks.values()]
    .filter(({ asset_id }) => asset_id === asset.id)
    .sort((a, b) => Date.parse(b.created_at) - Date.parse(a.created_at))
    .slice(0, tasks_shown_max);
  if (tasks.length === 0) return '';
  return card(
    'tasks',
    t.task.title,
    html`<ul class="rows">
      ${tasks.map((task) => html`<li key=${task.id} class="row">${taskRow(task, view)}</li>`)}
    </ul>`,
  );
}

function childrenCard(asset: LiveAsset, view: View) {
  const children = [...view.world.assets.values()].filter(({ parent_id }) => parent_id === asset.id);
  if (children.length === 0) return '';
  return card(
    'children',
    t.asset.children,
    html`<ul class="rows">
      ${children.map((child) => assetRow(child, 0, view))}
    </ul>`,
  );
}
