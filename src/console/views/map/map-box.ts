/** A map: the plane around the kit with marks, tracks and rings; needs no network and no tiles. */
import { placeText } from '../../world/geo.ts';
import { placeAt, trackNow } from '../../world/history/track.ts';
import { placeOfAsset, placeOfKit, canFly } from '../../world/places.ts';
import { addressOf } from '../../world/route.ts';
import { plain } from '../../world/text.ts';
import { clock } from '../../units.ts';
import { t } from '../../words/words.ts';
import { html } from '../parts/html.ts';
import { icon } from '../parts/icon.ts';
import { age, lostBox } from '../parts/marks.ts';
import { Component } from 'preact';
import { lazy } from '../parts/lazy.ts';
import { settings } from '../../settings.ts';
import { mercatorFrame, planeFrame, sectionOf, type Frame, base } from './frame.ts';
import { mapSummary, overlay } from './overlay.ts';
import type { LiveAsset, View } from '../../types.d.ts';

interface About {
  readonly isSmall?: boolean;
  readonly isTall?: boolean;
  readonly asset?: LiveAsset;
}

/** The base map, with its libraries of 450 kB: fetched when a map is opened. */
const baseMap = lazy(async () => (await import('./base-map.ts')).BaseMap);
const zoom_min = -6;
const zoom_max = 8;
/** A press that moves farther is a drag, not a tap. */
const drag_px = 8;

export function mapBox(view: View, about: About) {
  const isEmpty = sectionOf(view, { w: 1, h: 1, asset: about.asset }) === undefined;
  const kind = `${about.isSmall ? 'small' : ''} ${about.isTall ? 'tall' : ''}`;
  if (isEmpty)
    return html`<section key="map" class=${`card map-empty ${kind}`}>
      <p class="empty">${t.map.noPosition}</p>
    </section>`;
  return html`<section class=${`mapbox ${kind}`} id="map" aria-label=${t.nav.map}>
    <${MapPicture} view=${view} about=${about} /> ${positionTag(view, about)}
    ${about.isSmall ? openButton(view) : controls(view, about)}
    ${!about.isSmall && base.state === 'ready' && html`<span class="map-tag low">${plain(base.attribution) || t.map.worldOutline}</span>`}
  </section>`;
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

function controls({ choices, act }: View, { asset }: About) {
  const zoom = (by: number) => () => {
    choices.map.zoom = Math.min(zoom_max, Math.max(zoom_min, choices.map.zoom + by));
    act.changed();
  };
  const fit = () => {
    choices.map = { zoom: 0, center: null, pan: null };
    act.changed();
  };
  const isFollowing = asset !== undefined && choices.map.center === asset.id;
  const follow = () => {
    choices.map = { ...choices.map, center: isFollowing || !asset ? null : asset.id, pan: null };
    act.changed();
  };
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

class MapPicture extends Component<{ view: View; about: About }, { w: number; h: number }> {
  override state: { w: number; h: number } = { w: 0, h: 0 };
  #svg: SVGElement | null = null;
  #sizes = new ResizeObserver(([entry]) => {
    if (entry)
      this.setState({ w: Math.round(entry.contentRect.width), h: Math.round(entry.contentRect.height) });
  });
  #press: { x: number; y: number; last_x: number; last_y: number; isDrag: boolean } | undefined;
  #frame: Frame | undefined;

  override componentDidMount() {
    if (this.#svg) this.#sizes.observe(this.#svg);
  }

  override componentWillUnmount() {
    this.#sizes.disconnect();
  }

  #keep = (element: SVGElement | null) => {
    this.#svg = element;
  };

  #down = ({ clientX: x, clientY: y, isPrimary }: PointerEvent) => {
    this.#press = isPrimary ? { x, y, last_x: x, last_y: y, isDrag: false } : undefined;
  };

  #move = (event: PointerEvent) => {
    const press = this.#press;
    const frame = this.#frame;
    if (!press || !frame || event.buttons === 0 || this.props.about.isSmall) return;
    const { clientX: x, clientY: y } = event;
    press.isDrag ||= Math.hypot(x - press.x, y - press.y) > drag_px;
    if (!press.isDrag) return;
    const { view } = this.props;
    const pan = frame.toPlace(frame.w / 2 - (x - press.last_x), frame.h / 2 - (y - press.last_y));
    press.last_x = x;
    press.last_y = y;
    view.choices.map = { ...view.choices.map, pan: { lat: pan.lat, lon: pan.lon }, center: null };
    view.act.changed();
  };

  #tap = (event: MouseEvent) => {
    const { view, about } = this.props;
    const { asset } = about;
    const wasDrag = this.#press?.isDrag === true;
    this.#press = undefined;
    const isOnMark = event.target instanceof Element && event.target.closest('a') !== null;
    if (wasDrag) event.preventDefault();
    if (wasDrag || isOnMark || !asset || !this.#svg || !this.#frame || !canFly(asset, view)) return;
    const box = this.#svg.getBoundingClientRect();
    const { lat, lon } = this.#frame.toPlace(event.clientX - box.left, event.clientY - box.top);
    view.act.setTarget({ asset_id: asset.id, lat, lon });
  };

  /** The base map, for maps that are not small; undefined while it is fetched, without WebGL, and by choice. */
  #base(hasPlace: boolean) {
    const { view, about } = this.props;
    if (!hasPlace || about.isSmall || settings.map === 'simple' || base.state === 'missing') return undefined;
    baseMap.load(view.act);
    return baseMap.now();
  }

  override render() {
    const { view, about } = this.props;
    const { w, h } = this.state;
    const section = w > 0 ? sectionOf(view, { w, h, asset: about.asset }) : undefined;
    const Base = this.#base(section !== undefined);
    const at = section && Base ? mercatorFrame(section, w, h) : undefined;
    this.#frame = at && base.state === 'ready' ? at : section && planeFrame(section, w, h);
    return html`${Base && at && html`<${Base} view=${view} at=${at} />`}<svg
        ref=${this.#keep}
        class=${base.state === 'ready' && Base ? 'map over' : 'map'}
        role="group"
        aria-label=${mapSummary(view)}
        onPointerDown=${this.#down}
        onPointerMove=${this.#move}
        onClick=${this.#tap}
      >
        ${this.#frame && overlay(view, this.#frame, about.asset)}
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
