/** The page in a real browser, on the real service, with a link between them that a test can silence, and a kit that a test plays. */
import axe from 'axe-core';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import type { JsonObject } from '../../../src/contract/json.ts';
import type { PageSource } from '../../../src/cloud/http/page/page-files.ts';
import { channels } from '../../../src/contract/topics.ts';
import { samples } from '../contract-samples.ts';
import { program } from '../peers.ts';
import { bundledPage } from './bundled-page.ts';
import { type Proxy, startProxy } from '../brokers/proxy.ts';
import type { ServiceOptions } from '../../../src/cloud/start.ts';
import { type ServiceLab, startServiceLab } from './service-lab.ts';

export const page_kit_id = '0f8c1a52-6d1e-4b7a-9c3d-1f2e3d4c5b6a';
export const other_kit_id = '9f8c1a52-6d1e-4b7a-9c3d-1f2e3d4c5b6b';
/** Bounds a wait for the page; a busy machine may need much of it. */
const patience_ms = 60_000;

const flags = [
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** Starts Debian's Chromium without its window: with one, a page took nearly twice the processor time. A fresh profile. */
export async function startBrowser({ hasWebGl = false } = {}): Promise<Browser> {
  return chromium.launch({
    executablePath: program('chromium-headless-shell'),
    headless: true,
    chromiumSandbox: false,
    args: [...flags, ...(hasWebGl ? webGlFlags : ['--disable-gpu', '--disable-3d-apis'])],
  });
}

/** WebGL without a graphics card. */
const webGlFlags = ['--use-gl=angle', '--use-angle=swiftshader', '--enable-unsafe-swiftshader'];

export interface PageLab {
  readonly lab: ServiceLab;
  readonly link: Proxy;
  readonly page: Page;
  readonly context: BrowserContext;
  /** Where the page is, seen from the browser. */
  readonly url: string;
  /** What the browser complained about: policy violations, exceptions, failed requests to strangers. */
  readonly complaints: readonly string[];
  /** Addresses outside of the service that the page asked for. */
  readonly strangers: readonly string[];
  /** The key that the page was opened with. */
  readonly key: string;
  stop(): Promise<void>;
}

export interface PageLabOptions {
  readonly width_px?: number;
  /** Device pixels for one of the page: the browser's zoom. */
  readonly scale?: number;
  /** The key has a second kit. */
  readonly isOfTwoKits?: boolean;
  readonly scopes?: readonly string[];
  readonly media_origins?: readonly string[];
  readonly video?: ServiceOptions['video'];
  readonly video_settings?: ServiceOptions['video_settings'];
  /** The service keeps contents of files. */
  readonly files?: ServiceOptions['files'];
  /** The service keeps history. */
  readonly hasHistory?: boolean;
  /** The operator's map. */
  readonly map_file?: string;
  /** Left out: that of the package. */
  readonly source?: PageSource;
  /** The page may do what its content security policy forbids: for what is measured beside it. */
  readonly bypassesPolicy?: boolean;
  /** Done before the page is loaded. */
  readonly prepare?: (page: Page) => Promise<void>;
}

/** Opens the page, logged in, at the kit. */
export async function openPage(browser: Browser, options: PageLabOptions = {}): Promise<PageLab> {
  const {
    width_px = 390,
    scale = 1,
    scopes,
    media_origins = [],
    hasHistory = false,
    map_file,
    source = await bundledPage(),
    prepare,
  } = options;
  const lab = await startServiceLab(page_kit_id, {
    media_origins,
    hasHistory,
    video: options.video,
    video_settings: options.video_settings,
    files: options.files,
    page: source,
    ...(map_file !== undefined && { map_file }),
  });
  const link = await startProxy(Number(new URL(lab.url).port));
  const url = `http://127.0.0.1:${link.port}`;
  const context = await browser.newContext({
    viewport: { width: width_px, height: 844 },
    deviceScaleFactor: scale,
    bypassCSP: options.bypassesPolicy === true,
  });
  context.setDefaultTimeout(patience_ms);
  const page = await context.newPage();
  await prepare?.(page);
  const complaints: string[] = [];
  const strangers: string[] = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text());
  });
  page.on('request', (request) => {
    const asked = request.url();
    if (!asked.startsWith(url) && !/^(?:data|blob):/u.test(asked)) strangers.push(asked);
  });
  const kits = options.isOfTwoKits ? [page_kit_id, other_kit_id] : [page_kit_id];
  const key = await lab.giveKey({ kits, ...(scopes && { scopes: [...scopes] }) });
  await playKit(lab);
  if (options.isOfTwoKits) await playOtherKit(lab);
  await page.goto(`${url}/#key=${encodeURIComponent(key)}`);
  return {
    lab,
    link,
    page,
    context,
    url,
    complaints,
    strangers,
    key,
    async stop() {
      await context.close();
      await link.close();
      await lab.stop();
    },
  };
}

interface Violation {
  readonly id: string;
  readonly html: readonly string[];
}

const violations = `axe.run(document, { resultTypes: ['violations'] }).then((found) =>
  found.violations.map(({ id, nodes }) => ({ id, html: nodes.map((node) => node.html) })))`;

/** What the checker of accessibility objects to, as one line each. A page takes the checker in once; what passes is not listed. */
export async function faultsOf(page: Page): Promise<string[]> {
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axe.source);
  const found = await page.evaluate<readonly Violation[]>(violations);
  return found.map(({ id, html }) => `${id}: ${html.map((text) => text.slice(0, 160)).join(' | ')}`);
}

/** Text with less than 7:1 between it and what lies behind it, in HTML and SVG; the map's paper is white. */
export async function contrastFaults(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const channelsOf = (color: string): number[] => (color.match(/[\d.]+/gu) ?? []).map(Number);
    const luminance = (color: string): number => {
      const [r = 0, g = 0, b = 0] = channelsOf(color).map((value) =>
        value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4,
      );
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const paperOf = (element: Element | null): string => {
      if (!element) return 'rgb(255, 255, 255)';
      const { backgroundColor } = getComputedStyle(element);
      return (channelsOf(backgroundColor)[3] ?? 1) === 0 ? paperOf(element.parentElement) : backgroundColor;
    };
    const faults: string[] = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const element = node.parentElement;
      if (!element || node.textContent?.trim() === '' || !element.checkVisibility()) continue;
      const { color, fill } = getComputedStyle(element);
      const pair = [luminance(element instanceof SVGElement ? fill : color), luminance(paperOf(element))];
      const ratio = (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
      if (ratio < 7) faults.push(`${ratio.toFixed(1)}: ${node.textContent}`);
    }
    return faults;
  });
}

export const ids = {
  drone: '1b671a64-40d5-591e-99b0-da01ff1f3341',
  camera: '2b671a64-40d5-591e-99b0-da01ff1f3342',
  silent: '3b671a64-40d5-591e-99b0-da01ff1f3343',
  /** Of the second kit. */
  other: '4b671a64-40d5-591e-99b0-da01ff1f3344',
} as const;
const here = { lat: 47.39, lon: 8.54 };

/** The kit says what it has: a drone with a camera, and a silent drone. */
export async function playKit(lab: ServiceLab): Promise<void> {
  const now = new Date().toISOString();
  await lab.publish(channels.state, {
    ...samples['kitState'],
    started_at: now,
    degraded: [],
    outbox: { rows: 3, bytes: 812, oldest: now },
  });
  await lab.publish(channels.telemetry, { ...samples['kitTelemetry'], wans });
  await announce(lab, ids.drone, { name: 'Drone 1', type: 'drone', protocol: 'mavlink', model: 'Quad' });
  await announce(lab, ids.camera, {
    name: 'Nose camera',
    type: 'camera',
    protocol: 'onvif',
    parent_id: ids.drone,
    feeds: ['motion', 'status'],
  });
  await announce(lab, ids.silent, {
    name: 'Drone 2',
    type: 'drone',
    protocol: 'mavlink',
    status: 'offline',
    status_reason: 'no heartbeat for 5 s',
    lat: here.lat + 0.003,
    lon: here.lon - 0.004,
  });
  await lab.publish(channels.commands(ids.drone), { revision: 1, commands });
  await fly(lab, 0);
  await lab.publish(channels.feed(ids.drone, 'sys_status'), samples['droneSysStatus'] ?? {});
  await lab.publish(channels.feed(ids.drone, 'battery'), samples['droneBattery'] ?? {});
  await lab.publish(channels.event(ids.camera, 'motion'), { detected: true, timestamp: now });
}

async function playOtherKit(lab: ServiceLab): Promise<void> {
  const kit = { kit: other_kit_id };
  await lab.publish(channels.state, samples['kitState'] ?? {}, kit);
  const other = { id: ids.other, asset_key: 'test:other', name: 'Other drone' };
  await lab.publish(channels.asset(ids.other), { ...samples['announcement'], ...other }, kit);
}

/** One fix of the drone, `step` seconds on its way. */
export async function fly(lab: ServiceLab, step: number, asset = ids.drone as string): Promise<void> {
  const lat = here.lat + 0.002 + step * 0.00005;
  await lab.publish(channels.feed(asset, 'gps'), {
    ...samples['droneGps'],
    lat,
    lon: here.lon + 0.003 + step * 0.00003,
  });
}

export async function announce(lab: ServiceLab, id: string, about: JsonObject): Promise<void> {
  await lab.publish(channels.asset(id), {
    ...samples['announcement'],
    id,
    asset_key: `test:${id}`,
    last_seen_at: new Date().toISOString(),
    lat: null,
    lon: null,
    feeds: ['gps', 'battery', 'sys_status'],
    ...about,
  });
}

const wans = [
  {
    name: 'eth3',
    type: 'satellite',
    status: 'online',
    isp: 'Starlink',
    ip: '203.0.113.7',
    rx_bps: 12_100_000,
    tx_bps: 2_300_000,
    latency_ms: 48.2,
    packet_loss_pct: 0.2,
    usage: { today_rx_gb: 1.25, month_rx_gb: 36.1, month_tx_gb: 5.1 },
  },
  { name: 'wwan0', type: 'cellular', status: 'standby', isp: 'Swisscom', latency_ms: 61 },
  { name: 'eth4', type: 'ethernet', status: 'offline' },
];

const flat = (properties: JsonObject, required: readonly string[]): JsonObject => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
});
const command = (n: number, name: string, about: JsonObject): JsonObject => ({
  id: `${n}0000000-0000-5000-8000-000000000000`,
  name,
  description: '',
  risk_level: 'low',
  requires_approval: false,
  input_schema: {},
  ...about,
});

const commands = [
  command(1, 'beep', { description: 'Beeps once' }),
  command(2, 'set_mode', {
    description: 'Changes the flight mode',
    risk_level: 'medium',
    input_schema: flat({ mode: { type: 'string', enum: ['GUIDED', 'AUTO', 'LOITER', 'RTL', 'LAND'] } }, [
      'mode',
    ]),
  }),
  command(3, 'goto_waypoint', {
    description: 'Flies to a position',
    risk_level: 'high',
    requires_approval: true,
    input_schema: flat(
      {
        lat: { type: 'number', minimum: -90, maximum: 90, description: 'degrees' },
        lon: { type: 'number', minimum: -180, maximum: 180, description: 'degrees' },
        alt_m: { type: 'number', minimum: 1, maximum: 120, description: 'metres above the ellipsoid' },
      },
      ['lat', 'lon', 'alt_m'],
    ),
  }),
  command(4, 'upload', { description: 'Takes anything', input_schema: { type: 'object', oneOf: [{}] } }),
];
