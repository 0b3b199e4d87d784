/** A map: marks, tracks and rings in the projection of the base map; needs no network and no tiles. */
import { placeText, type Place } from '../../world/geo.ts';
import { placeAt, trackNow } from '../../world/history/track.ts';
import { placeOfAsset, placeOfKit, canFly } from '../../world/places.ts';
import { addressOf } from '../../world/route.ts';
import { plain } from '../../world/text.ts';
import { clock } from '../../units.ts';
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import { icon } from '../parts/icon.ts';
import { age, lostBox } from '../parts/marks.ts';
import { Component, createRef } from 'preact';
import { lazy } from '../parts/lazy.ts';
import { settings } from '../../settings.ts';
import { base, mercatorFrame, range_limits_m, sectionOf, type Mercator, type Section } from './frame.ts';
import { coast } from './coast.ts';
import { ground } from './ground.ts';
import { mapSummary, overlay } from './overlay.ts';
import type { LiveAsset, View } from '../../types.d.ts';

interface About {
  readonly isSmall?: boolean;
  readonly isTall?: boolean;
  readonly asset?: LiveAsset;
}

/** What a map shows, and what a person does on it. */
interface Shown {
  readonly section: Section;
  readonly summary: string;
  readonly draw: (frame: Mercator) => unknown;
  /** A part of a list or a page: neither moved nor with the base map. */
  readonly isSmall?: boolean;
  /** The page has no more than the map: the wheel is its. */
  readonly hasWheel?: boolean;
  readonly onTap?: ((place: Place) => void) | undefined;
}

/** The base map, with its libraries of 450 kB: fetched when a map is opened. */
const baseMap = lazy(async () => (await import('./base-map.ts')).BaseMap);
/** A press that moves farther is a drag, not a tap. */
const drag_px = 8;
/** Of the wheel for twice the scale. */
const wheel_px = 400;

export function mapBox(view: View, about: About) {
  const { asset, isSmall = false } = about;
  const section = sectionOf(view, asset);
  const kind = `${about.isSmall ? 'small' : ''} ${about.isTall ? 'tall' : ''}`;
  if (!section)
    return html`<section key="map" class=${`card map-empty ${kind}`}>
      <p class="empty">${t.map.noPosition}</p>
    </section>`;
  const shown: Shown = {
    section,
    isSmall,
    hasWheel: about.isTall === true && !asset,
    summary: mapSummary(view),
    draw: (frame) => overlay(view, frame, asset),
    onTap:
      asset && canFly(asset, view)
        ? ({ lat, lon }) => view.act.choose({ target: { asset_id: asset.id, lat, lon } })
        : undefined,
  };
  return html`<section class=${`mapbox ${kind}`} id="map" aria-label=${t.nav.map}>
    <${MapPicture} view=${view} shown=${shown} /> ${positionTag(view, about)}
    ${isSmall ? openButton(view) : controls(view, section, asset)} ${!isSmall && credit(view)}
  </section>`;
}

/** Whose map it is; where there is none, the way to add one. */
export function credit({ choices }: View) {
  if (base.state !== 'ready') return '';
  const text = plain(base.fault) || plain(base.attribution);
  if (text !== '' || base.bounds) return html`<span class="map-tag low">${text}</span>`;
  return html`<a class="map-tag low" href=${addressOf('settings', choices.kit_id)}>${t.map.worldOutline}</a>`;
}

function positionTag(view: View, { asset }: About) {
  const { moment_ms } = view.choices;
  const then =
    asset && moment_ms !== null ? placeAt(trackNow(asset, view)?.track ?? [], moment_ms) : undefined;
  const place = then ?? (asset ? placeOfAsset(asset, view) : placeOfKit(view));
  if (!place) return '';
  const text = `${place.lat.toFixed(4)}, ${place.lon.toFixed(4)}`;
  return html`<span class="map-tag" title=${placeText(place)}
    >${icon('locate-fixed', 's')} ${text} ${'isOld' in place ? age(place) : clock(moment_ms ?? 0)}</span
  >`;
}

function openButton({ choices }: View) {
  return html`<div class="map-controls">
    <a class="icon-btn" href=${addressOf('map', choices.kit_id)} aria-label=${t.map.open}
      >${icon('maximize')}</a
    >
  </div>`;
}

/** Zooms by so many powers of two, within what can be shown. */
export function zoomBy({ choices }: View, { range_m }: Section, by: number) {
  const { min, max } = range_limits_m;
  const next_m = Math.min(Math.max(max, range_m), Math.max(Math.min(min, range_m), range_m / 2 ** by));
  choices.map = { ...choices.map, zoom: choices.map.zoom + Math.log2(range_m / next_m) };
}

export function controls(view: View, section: Section, asset?: LiveAsset) {
  const { choices, act } = view;
  const zoom = (by: number) => () => {
    zoomBy(view, section, by);
    act.changed();
  };
  const fit = () => act.choose({ map: { zoom: 0, center: null, pan: null } });
  const isFollowing = asset !== undefined && choices.map.center === asset.id;
  const follow = () =>
    act.choose({ map: { ...choices.map, center: isFollowing || !asset ? null : asset.id, pan: null } });
  return html`<div class="map-controls" role="group" aria-label=${t.nav.map}>
    <button type="button" class="icon-btn" onClick=${zoom(1)} aria-label=${t.map.nearer}>
      ${icon('plus')}
    </button>
    <button type="button" class="icon-btn" onClick=${zoom(-1)} aria-label=${t.map.farther}>
      ${icon('minus')}
    </button>
    <button type="button" class="icon-btn" onClick=${fit} aria-label=${t.map.fit}>${icon('maximize')}</button>
    ${
      asset &&
      html`<button
        type="button"
        class="icon-btn"
        onClick=${follow}
        aria-pressed=${String(isFollowing)}
        aria-label=${t.map.follow}
      >
        ${icon('locate-fixed')}
      </button>`
    }
  </div>`;
}

export class MapPicture extends Component<{ view: View; shown: Shown }, { w: number; h: number }> {
  override state: { w: number; h: number } = { w: 0, h: 0 };
  #svg = createRef<SVGElement>();
  #sizes = new ResizeObserver(([entry]) => {
    if (entry)
      this.setState({ w: Math.round(entry.contentRect.width), h: Math.round(entry.contentRect.height) });
  });
  /** Fingers that are down, by their ids, where they were last. */
  #fingers: Map<number, { readonly x: number; readonly y: number }> = new Map();
  #start: { readonly x: number; readonly y: number } = { x: 0, y: 0 };
  #isDrag = false;
  #frame: Mercator | undefined;

  override componentDidMount() {
    if (this.#svg.current) this.#sizes.observe(this.#svg.current);
  }

  override componentWillUnmount() {
    this.#sizes.disconnect();
  }

  #down = ({ pointerId, clientX: x, clientY: y, isPrimary }: PointerEvent) => {
    if (isPrimary) {
      this.#fingers.clear();
      this.#start = { x, y };
      this.#isDrag = false;
    }
    this.#fingers.set(pointerId, { x, y });
  };

  #up = ({ pointerId }: PointerEvent) => this.#fingers.delete(pointerId);

  #move = ({ pointerId, buttons, clientX: x, clientY: y }: PointerEvent) => {
    const before = this.#fingers.get(pointerId);
    const frame = this.#frame;
    if (!before || !frame || buttons === 0 || this.props.shown.isSmall) return;
    this.#isDrag ||= this.#fingers.size > 1 || Math.hypot(x - this.#start.x, y - this.#start.y) > drag_px;
    if (!this.#isDrag) return;
    const other = [...this.#fingers].find(([id]) => id !== pointerId)?.[1];
    this.#fingers.set(pointerId, { x, y });
    if (!other) return this.#pan(frame.w / 2 - (x - before.x), frame.h / 2 - (y - before.y));
    const apart = (at: { readonly x: number; readonly y: number }) =>
      Math.hypot(at.x - other.x, at.y - other.y);
    this.#zoom(Math.log2(apart({ x, y }) / Math.max(1, apart(before))), (x + other.x) / 2, (y + other.y) / 2);
  };

  #wheel = (event: WheelEvent) => {
    if (!this.props.shown.hasWheel) return;
    event.preventDefault();
    this.#zoom(Math.max(-1, Math.min(1, -event.deltaY / wheel_px)), event.clientX, event.clientY);
  };

  /** Zooms so that the place at this point of the window stays there. */
  #zoom(by: number, client_x: number, client_y: number) {
    const box = this.#svg.current?.getBoundingClientRect();
    const frame = this.#frame;
    if (!box || !frame) return;
    const stays = 1 - 2 ** -by;
    zoomBy(this.props.view, this.props.shown.section, by);
    this.#pan(
      frame.w / 2 + (client_x - box.left - frame.w / 2) * stays,
      frame.h / 2 + (client_y - box.top - frame.h / 2) * stays,
    );
  }

  /** Moves this point of the picture to its middle. */
  #pan(x: number, y: number) {
    const { choices, act } = this.props.view;
    const pan = this.#frame?.toPlace(x, y);
    if (pan) choices.map = { ...choices.map, pan, center: null };
    act.changed();
  }

  #tap = (event: MouseEvent) => {
    const { onTap } = this.props.shown;
    const wasDrag = this.#isDrag;
    this.#isDrag = false;
    const isOnMark = event.target instanceof Element && event.target.closest('a') !== null;
    if (wasDrag) event.preventDefault();
    if (wasDrag || isOnMark || !onTap || !this.#svg.current || !this.#frame) return;
    const box = this.#svg.current.getBoundingClientRect();
    onTap(this.#frame.toPlace(event.clientX - box.left, event.clientY - box.top));
  };

  /** The base map, for maps that are not small; undefined while it is fetched, without WebGL, and by choice. */
  #base() {
    const { view, shown } = this.props;
    if (shown.isSmall || settings.map === 'simple' || base.state === 'missing') return undefined;
    baseMap.load(view.act);
    return baseMap.now();
  }

  override render() {
    const { view, shown } = this.props;
    const { w, h } = this.state;
    const Base = this.#base();
    this.#frame = w > 0 ? mercatorFrame(shown.section, w, h) : undefined;
    const isOver = base.state === 'ready' && Base !== undefined;
    return html`${Base && this.#frame && html`<${Base} view=${view} at=${this.#frame} />`}<svg
        ref=${this.#svg}
        class=${isOver ? 'map over' : 'map'}
        role="group"
        aria-label=${shown.summary}
        onPointerDown=${this.#down}
        onPointerMove=${this.#move}
        onPointerUp=${this.#up}
        onPointerCancel=${this.#up}
        onWheel=${this.#wheel}
        onClick=${this.#tap}
      >
        ${this.#frame && html`${!isOver && coast(this.#frame, view)}${!shown.isSmall && ground(this.#frame)}${shown.draw(this.#frame)}`}
      </svg>`;
  }
}

/** The full map of the kit. */
export function mapScreen(view: View) {
  return {
    heading: { title: t.nav.map, isKit: true },
    body: html`<div class="page full">
      ${lostBox(view)}
      <h1 class="unseen only-phone">${t.nav.map}</h1>
      ${mapBox(view, { isTall: true })}
    </div>`,
  };
}
