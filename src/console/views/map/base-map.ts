/**
 * The base map under the marks: the outline of the world, and over it the operator's map where the service has one. It only
 * shows; gestures and marks are those of the plain map. No request leaves the service.
 */
import { addProtocol, Map as MapView, setWorkerUrl } from 'maplibre-gl';
import { FileSource, PMTiles, Protocol, TileType } from 'pmtiles';
import { Component, createRef } from 'preact';
import { ask } from '../../world/api.ts';
import { field } from '../../json.ts';
import { pageFile } from '../parts/lazy.ts';
import { html } from '../parts/html.ts';
import { styleOf } from './base-style.ts';
import { type Detail, loadDetail } from './detail.ts';
import { keptMap } from './own-map.ts';
import type { View } from '../../types.d.ts';
import { type Bounds, type Mercator, base } from './frame.ts';

interface Props {
  readonly view: View;
  readonly at: Mercator;
}

const worker_url = pageFile('maplibre-gl-worker.js');
/** A context that is lost again does not come back for long: the plain map stays. */
const losses_max = 2;
const pixel_ratio_max = 2;

let archive: Promise<unknown> | undefined;
const protocol = new Protocol();
let losses = 0;
let isPrepared = false;

/** The policy of the page allows no script from text, except the address of this one worker. */
function prepare() {
  if (isPrepared) return;
  isPrepared = true;
  const scope: object = globalThis;
  if (hasTrustedTypes(scope))
    scope.trustedTypes.createPolicy('default', {
      createScriptURL: (url: string) => (url === worker_url ? url : null),
    });
  setWorkerUrl(worker_url);
  addProtocol('pmtiles', protocol.tile);
}

/** Not every browser has them. */
function hasTrustedTypes(
  scope: object,
): scope is { readonly trustedTypes: { readonly createPolicy: (name: string, rules: object) => unknown } } {
  return 'trustedTypes' in scope;
}

/** The file of this device, else what the service reports about the operator's map; asked for once. An older service has none. */
async function archiveOf() {
  const own = await ownArchive().catch(() => undefined);
  archive ??= ask('GET', '/api/map').catch(() => undefined);
  return own ?? archive;
}

/** The same about a file that was chosen on this device. */
async function ownArchive() {
  const file = await keptMap();
  if (!file) return undefined;
  const tiles = new PMTiles(new FileSource(file));
  protocol.add(tiles);
  const { tileType, minLon, minLat, maxLon, maxLat } = await tiles.getHeader();
  return {
    archive: {
      url: file.name,
      tile_type: tileType === TileType.Mvt ? 'mvt' : 'raster',
      attribution: field(await tiles.getMetadata(), 'attribution'),
      bounds: [minLon, minLat, maxLon, maxLat],
    },
  };
}

export class BaseMap extends Component<Props> {
  #box = createRef<HTMLElement>();
  #map: MapView | undefined;
  #theme = '';
  #size = '';
  #archive: unknown;
  #detail: Detail | undefined;

  override componentDidMount() {
    void this.#open();
  }

  override componentDidUpdate() {
    this.#show();
  }

  override componentWillUnmount() {
    this.#map?.remove();
    this.#map = undefined;
  }

  async #open() {
    const answer = await archiveOf();
    this.#archive = field(answer, 'archive') ?? undefined;
    const { view, at } = this.props;
    const fault = field(answer, 'fault');
    base.fault = typeof fault === 'string' ? fault : '';
    base.attribution = plainText(field(this.#archive, 'attribution'));
    base.bounds = boundsOf(field(this.#archive, 'bounds'));
    if (!this.#box.current) return;
    this.#theme = view.theme;
    try {
      prepare();
      this.#map = new MapView({
        container: this.#box.current,
        style: styleOf(this.#archive, this.#detail, base.bounds),
        center: at.center,
        zoom: at.zoom,
        interactive: false,
        attributionControl: false,
        trackResize: false,
        fadeDuration: 0,
        pixelRatio: Math.min(devicePixelRatio, pixel_ratio_max),
      });
      this.#listen(this.#map);
      base.state = 'ready';
      void this.#refine(this.#map);
    } catch (error) {
      base.state = 'missing';
      view.act.note(`base map: ${error instanceof Error ? error.message : 'not available'}`);
    }
    view.act.arrived();
  }

  /** Shows finer coasts, borders and towns, once they are loaded. */
  async #refine(map: MapView) {
    try {
      this.#detail = await loadDetail();
      base.towns = this.#detail.towns.features;
    } catch (error) {
      this.props.view.act.note(`base map: ${error instanceof Error ? error.message : 'not loaded'}`);
      return;
    }
    if (map === this.#map) map.setStyle(styleOf(this.#archive, this.#detail, base.bounds));
  }

  #listen(map: MapView) {
    const { act } = this.props.view;
    // Before the land is drawn, all would be sea.
    map.once('load', () => this.#box.current?.classList.add('drawn'));
    map.on('error', ({ error }) => act.note(`base map: ${error.message}`));
    map.on('webglcontextlost', () => {
      losses += 1;
      if (losses < losses_max) return;
      base.state = 'missing';
      act.arrived();
    });
  }

  /** Follows the frame, the size and the theme. */
  #show() {
    const map = this.#map;
    const { view, at } = this.props;
    if (!map) return;
    if (this.#size !== `${at.w} ${at.h}`) map.resize();
    this.#size = `${at.w} ${at.h}`;
    if (this.#theme !== view.theme) map.setStyle(styleOf(this.#archive, this.#detail, base.bounds));
    this.#theme = view.theme;
    map.jumpTo({ center: at.center, zoom: at.zoom });
  }

  override render() {
    return html`<div class="base" ref=${this.#box} aria-hidden="true"></div>`;
  }
}

function boundsOf(value: unknown): Bounds | undefined {
  const [west, south, east, north] = Array.isArray(value) ? value.map(Number) : [];
  if (west === undefined || south === undefined || east === undefined || north === undefined)
    return undefined;
  return [west, south, east, north];
}

/** The credit of the operator's map without its markup. */
function plainText(text: unknown): string {
  return typeof text === 'string' ? text.replace(/<[^>]*>/gu, '').trim() : '';
}
