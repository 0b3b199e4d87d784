/** The page of one asset: its first part by type, then commands, tasks and all values. */
import { own, isRecord, parseJson } from '../../json.ts';
import { assetState, health_items, isAssetReachable, feedFreshness, missingOf } from '../../world/age.ts';
import { duration, clock, heightIn, measureText } from '../../units.ts';
import { placeText } from '../../world/geo.ts';
import { placeOfAsset } from '../../world/places.ts';
import { addressOf } from '../../world/route.ts';
import { plain, fieldText, label } from '../../world/text.ts';
import { fieldOf } from '../../world/world.ts';
import { t } from '../../words/words.ts';
import { assetRow, stateWord } from '../assets/asset-row.ts';
import { commandsCard, commandSheet } from '../command/command-view.ts';
import { taskRow } from '../command/task-row.ts';
import { hasTrack, historyCard } from '../history/asset-history.ts';
import { pastBox, rangeChips, scrubber } from '../history/range.ts';
import { lostBox, card, fact, name, sentence, state, age, isWideNow } from '../parts/marks.ts';
import { mapBox } from '../map/map-box.ts';
import { filesCard } from '../files/files-view.ts';
import { html } from '../parts/html.ts';
import { icon } from '../parts/icon.ts';
import { cameraBody } from './camera-view.ts';
import { droneBody, type Shared } from './drone-view.ts';
import { radioBody } from './radio-view.ts';
import type { LiveAsset, View, FeedMessage } from '../../types.d.ts';
import { spanOf } from '../../world/history/history.ts';
import { trackNow } from '../../world/history/track.ts';

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
    first: html`${lostBox(view)}${pastBox(view)}${offlineBox(asset, view)}${missingBox(asset)}`,
    way: trackBar(asset, view),
    past: html`${hasTrack(asset) ? '' : rangeChips(view)}${historyCard(asset, view)}`,
    commands: commandsCard(asset, view),
    rest: html`${tasksCard(asset, view)}${filesCard(asset, view)}${childrenCard(asset, view)}${aboutCard(asset, view)}${metadataCard(asset, view)}${feedsCard(asset, view)}`,
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

/** What it does not deliver although it is online, in the words of the device. */
function missingBox(asset: LiveAsset) {
  const missing = missingOf(asset);
  if (missing.length === 0) return '';
  return html`<section key="missing" class="card notice warn">
    <b>${t.state.degraded}</b>
    ${missing.map(({ item, reason, next_try_at }) => {
      const next = next_try_at === null ? '' : ` ${t.health.nextTry(Date.parse(next_try_at))}`;
      return html`<span key=${item}
        >${t.health.missing[item]}: ${sentence(reason ?? t.attention.noReason)}${next}</span
      >`;
    })}
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
      ${health_items.map((item) => healthFact(asset, item))}
      ${fact(t.asset.lastSeen, `${clock(seen_ms, { isExact: true })} (${duration(view.time_ms - seen_ms)})`)}
      ${fact(t.asset.position, text === '' ? t.notReported : html`<span class="place">${text}</span>${copyButton}`, place)}
      ${place && typeof asset.alt_m === 'number' ? fact(t.asset.altitude, t.asset.aboveEllipsoid(measureText(heightIn(asset.alt_m)))) : ''}
    </dl>`,
  );
}

function healthFact({ health = {} }: LiveAsset, item: (typeof health_items)[number]) {
  const { state, reason } = health[item] ?? {};
  if (state !== 'works' && state !== 'not_offered') return '';
  const word = t.health[state];
  return fact(t.health.item[item], reason ? html`<span>${word}: ${sentence(reason)}</span>` : word);
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

const list_shown_max = 12;

/** All values of an asset with their ages, folded away: what the pages by type do not show stands here. */
function feedsCard(asset: LiveAsset, view: View) {
  // A picture is no value.
  const feeds = Object.entries(view.world.feeds.get(asset.id) ?? {})
    .filter(([feed]) => feed !== 'alarm_picture')
    .sort(([a], [b]) => (a < b ? -1 : 1));
  const missing = asset.feed_names.filter(
    (feed) => feed !== 'alarm_picture' && !feeds.some(([known]) => known === feed),
  );
  return html`<section class="card" id="values">
    <details>
      <summary class="sec">${t.asset.allValues}</summary>
      ${feeds.map(([feed, message]) => feedView(asset, feed, message, view))}
      ${missing.length > 0 ? html`<p class="empty">${t.asset.noDataYet(missing.map(label).join(', '))}</p>` : ''}
      ${feeds.length === 0 && missing.length === 0 ? html`<p class="empty">${t.asset.noFeeds}</p>` : ''}
    </details>
  </section>`;
}

function feedView(asset: LiveAsset, feed: string, { data }: FeedMessage, view: View) {
  const freshness = feedFreshness(asset, feed, view);
  return html`<div key=${feed} class=${freshness.isOld ? 'feed is-old' : 'feed'}>
    <h3><span>${label(feed)}</span> ${age(freshness)}</h3>
    ${isRecord(data) ? values(data) : ''}
  </div>`;
}

function values(data: Readonly<Record<string, unknown>>): unknown {
  return html`<dl>
    ${Object.entries(data).map(
      ([key, value]) =>
        html`<div key=${key}>
          <dt>${label(key)}</dt>
          <dd>${valueView(key, value)}</dd>
        </div>`,
    )}
  </dl>`;
}

/** A list of objects becomes a separate list, so that nothing is cut off in the middle. */
function valueView(key: string, value: unknown): unknown {
  if (!Array.isArray(value) || !value.some(isRecord)) return html`<bdi>${fieldText(key, value)}</bdi>`;
  const rows = value.slice(0, list_shown_max);
  return html`<ul class="nested">
    ${rows.map((each) => html`<li>${isRecord(each) ? values(each) : plain(each)}</li>`)}
    ${value.length > rows.length ? html`<li class="cap">${t.attention.more(value.length - rows.length)}</li>` : ''}
  </ul>`;
}

/** Metadata of a partner asset, where the service gives it; edited as JSON by a key that may. */
function metadataCard(asset: LiveAsset, view: View) {
  if (asset.protocol !== 'partner') return '';
  const { choices, act } = view;
  const known = choices.metadata.get(asset.id);
  if (known === undefined) act.loadMetadata(asset.id);
  const mayWrite = choices.session?.scopes.includes('assets:write') === true;
  if (!mayWrite && !isRecord(known?.value)) return '';
  return card('metadata', t.metadata.title, editor(asset, view, mayWrite));
}

function editor(asset: LiveAsset, { choices, act }: View, mayWrite: boolean) {
  const known = choices.metadata.get(asset.id);
  const text = choices.typed.get(`${asset.id} metadata`) ?? JSON.stringify(known?.value ?? {}, undefined, 2);
  const isValid = isRecord(parseJson(text));
  const type = ({ currentTarget }: Event & { currentTarget: HTMLTextAreaElement }) => {
    choices.typed.set(`${asset.id} metadata`, currentTarget.value);
    act.changed();
  };
  const save = () => (isValid ? void act.saveMetadata(asset.id, text) : undefined);
  return html`<div class="pad">
    <label class="input"
      ><span class="unseen">${t.metadata.title}</span>
      <textarea rows="5" spellcheck=${false} readonly=${!mayWrite} value=${text} onInput=${type}></textarea>
      <span class="note">${isValid ? '' : html`<b class="fault">${t.form.notJson}</b>`}</span></label
    >
    ${mayWrite && html`<button type="button" class="btn" aria-disabled=${String(!isValid)} onClick=${save}>${t.metadata.save}</button>`}
    <p class="outcome" role="status">${known?.text ? name(known.text) : ''}</p>
  </div>`;
}

/**
 * Copies text on pages without a secure context, where the clipboard interface does not exist.
 * @returns whether the browser did it
 */
function copy(text: string): boolean {
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'unseen';
  area.setAttribute('aria-hidden', 'true');
  const before = document.activeElement;
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand('copy');
  area.remove();
  if (before instanceof HTMLElement) before.focus();
  return isCopied;
}

/** Below a map: how far back the way of the asset is drawn, and the slider. */
function trackBar(asset: LiveAsset, view: View) {
  const read = trackNow(asset, view);
  const isEmpty = read !== undefined && !read.isLoading && read.track.length === 0;
  const empty = read?.fault ? t.history.fault(read.fault) : t.history.noTrack;
  return html`<section key="track" class="card pad track-bar" aria-label=${t.history.track}>
    ${rangeChips(view)} ${isEmpty && html`<p class="cap">${empty}</p>`} ${scrubber(view, spanOf(view))}
  </section>`;
}
