/** Holds the state of the kit as the frames of the service report it. */
import { field, own } from './json.js';
import { byName } from './text.js';

/** @import { FeedMessage, Fix, KitNow, LiveAsset, QueueResource, ServerFrame, Snapshot, TaskResource, World } from '../types.d.ts' */

const trail_ms = 600_000;
const trail_fixes_max = 150;
/** Between two points of a trail. */
const trail_step_ms = 3_000;
const tasks_max = 50;
const samples_max = 240;
/** Links whose changes are remembered. */
const edges_max = 64;
const reports_max = 60;
/** Older reports do not show how fast the queue drains now. */
const reports_ms = 120_000;
/** Two reports closer together do not give a reliable rate. */
const drain_over_ms = 4_000;

/** @returns {World} */
export function emptyWorld() {
  return {
    kit: null,
    queue: null,
    reports: [],
    assets: new Map(),
    feeds: new Map(),
    commands: new Map(),
    tasks: new Map(),
    trails: new Map(),
    latencies: new Map(),
    periods: new Map(),
    linkEdges: new Map(),
    series: new Map(),
  };
}

/**
 * Applies one frame. Trails and intervals outlive a snapshot: they belong to the page.
 * @param {World} world
 * @param {ServerFrame} frame
 */
export function takeFrame(world, frame) {
  switch (frame.type) {
    case 'snapshot':
      takeSnapshot(world, frame);
      break;
    case 'kit':
      takeKit(world, frame.kit);
      break;
    case 'queue':
      takeQueue(world, frame.queue);
      break;
    case 'asset':
      world.assets.set(frame.asset.id, frame.asset);
      break;
    case 'asset_gone':
      forget(world, frame.asset_id);
      break;
    case 'commands':
      world.commands.set(frame.asset_id, frame.commands);
      break;
    case 'feed':
      takeFeed(world, frame.asset_id, frame.feed, frame.message);
      break;
    case 'task':
      takeTask(world, frame.task);
      break;
    case 'heartbeat':
    default:
  }
}

/**
 * @param {World} world
 * @param {Snapshot} snapshot
 */
function takeSnapshot(world, { kit, queue, assets, feeds, commands, tasks }) {
  takeKit(world, kit);
  takeQueue(world, queue);
  for (const id of world.assets.keys()) if (!assets.some((asset) => asset.id === id)) forget(world, id);
  for (const asset of assets) world.assets.set(asset.id, asset);
  for (const [id, ofAsset] of Object.entries(feeds)) {
    world.feeds.set(id, ofAsset);
    for (const [feed, message] of Object.entries(ofAsset)) extend(world, id, feed, message);
  }
  for (const [id, list] of Object.entries(commands)) world.commands.set(id, list);
  world.tasks.clear();
  for (const task of tasks) takeTask(world, task);
}

/**
 * @param {World} world
 * @param {KitNow} kit
 */
function takeKit(world, kit) {
  world.kit = kit;
  const time_ms = Date.parse(kit.times['wans'] ?? '');
  for (const { name, latency_ms } of kit.wans) {
    const samples = world.latencies.get(name) ?? [];
    if (Number.isNaN(time_ms) || time_ms === samples.at(-1)?.time_ms) continue;
    const sample = { time_ms, value: latency_ms ?? null };
    world.latencies.set(name, [...before(samples, time_ms), sample].slice(-samples_max));
  }
  recordKit(world, kit, time_ms);
}

/**
 * @param {World} world
 * @param {KitNow} kit
 * @param {number} time_ms of its links
 */
function recordKit(world, kit, time_ms) {
  for (const { name, status } of kit.wans)
    record(world, `up ${name}`, time_ms, status ? Number(status !== 'offline') : null);
  record(world, 'battery', Date.parse(kit.times['battery'] ?? ''), kit.battery);
  record(world, 'cpu', Date.parse(kit.times['gateway'] ?? ''), kit.gateway?.cpu_pct);
}

/**
 * @param {World} world
 * @param {QueueResource} queue
 */
function takeQueue(world, queue) {
  world.queue = queue;
  const { online, as_of, waiting_rows: rows } = queue;
  if (as_of === null || rows === null) return;
  const time_ms = Date.parse(as_of);
  if (online) record(world, 'queue', time_ms, rows);
  const last = world.reports.at(-1);
  // A will was written when the kit connected: it is not a current report.
  if (last && (time_ms === last.time_ms || (!online && time_ms < last.time_ms))) return;
  // A queue that has grown invalidates the earlier reports: they do not show when it will be empty.
  const kept = last && rows > last.rows ? [] : before(world.reports, time_ms);
  const recent = kept.filter((report) => time_ms - report.time_ms <= reports_ms);
  world.reports.splice(0, world.reports.length, ...[...recent, { time_ms, rows }].slice(-reports_max));
}

/**
 * Drops samples that are later than `time_ms`: the clock of the kit was ahead then, and their times are invalid.
 * @template {{ readonly time_ms: number }} T
 * @param {readonly T[]} samples
 * @param {number} time_ms
 * @returns {readonly T[]}
 */
function before(samples, time_ms) {
  return samples.filter((sample) => sample.time_ms < time_ms);
}

/**
 * Estimates when the queue of the kit will be empty, from the first and last report of these minutes. Undefined when it
 * is empty, does not shrink, or was reported only once.
 * @param {World} world
 * @param {number} time_ms the server's clock
 * @returns {number | undefined}
 */
export function drainsIn({ reports }, time_ms) {
  const first = reports[0];
  const last = reports.at(-1);
  if (!first || !last || time_ms - last.time_ms > reports_ms) return undefined;
  const span_ms = last.time_ms - first.time_ms;
  const gone = first.rows - last.rows;
  if (last.rows === 0 || gone <= 0 || span_ms < drain_over_ms) return undefined;
  return (last.rows * span_ms) / gone;
}

/**
 * @param {World} world
 * @param {string} id
 */
function forget(world, id) {
  world.assets.delete(id);
  world.feeds.delete(id);
  world.commands.delete(id);
  world.trails.delete(id);
  for (const map of [world.periods, world.series])
    for (const key of map.keys()) if (key.startsWith(`${id} `)) map.delete(key);
}

/**
 * @param {World} world
 * @param {TaskResource} task
 */
function takeTask(world, task) {
  world.tasks.set(task.id, task);
  if (world.tasks.size <= tasks_max) return;
  const [oldest] = [...world.tasks.values()].sort(
    (a, b) => Date.parse(a.created_at) - Date.parse(b.created_at),
  );
  if (oldest) world.tasks.delete(oldest.id);
}

/**
 * @param {World} world
 * @param {string} id
 * @param {string} feed
 * @param {FeedMessage} message
 */
function takeFeed(world, id, feed, message) {
  const feeds = world.feeds.get(id) ?? {};
  const before = own(feeds, feed);
  if (before) updatePeriod(world, `${id} ${feed}`, Date.parse(message.time) - Date.parse(before.time));
  world.feeds.set(id, { ...feeds, [feed]: message });
  extend(world, id, feed, message);
}

/**
 * Takes from a message what the page keeps over time.
 * @param {World} world
 * @param {string} id
 * @param {string} feed
 * @param {FeedMessage} message
 */
function extend(world, id, feed, message) {
  if (feed === 'gps') extendTrail(world, id, message);
  if (feed === 'link_status') takeLinkEdge(world, message);
  const [name, field_name] = own(recorded, feed) ?? [];
  if (name && field_name)
    record(world, `${id} ${name}`, Date.parse(message.time), numberOf(message, field_name));
}

/** Feeds whose last minutes are drawn: the name of the series, and the field. */
/** @type {Readonly<Record<string, readonly [string, string]>>} */
const recorded = {
  gps: ['height', 'relative_alt_m'],
  battery: ['battery', 'remaining_pct'],
  radio: ['radio', 'rssi'],
};

/**
 * Keeps what links reported of their changes: since when a link is offline, and why.
 * @param {World} world
 * @param {FeedMessage} message
 */
function takeLinkEdge(world, message) {
  const name = fieldOf(message, 'name');
  const status = fieldOf(message, 'status');
  const reason = fieldOf(message, 'reason');
  if (typeof name !== 'string' || typeof status !== 'string') return;
  if (world.linkEdges.size >= edges_max && !world.linkEdges.has(name)) return;
  const edge = {
    status,
    time_ms: Date.parse(message.time),
    reason: typeof reason === 'string' ? reason : '',
  };
  world.linkEdges.set(name, edge);
}

/**
 * Adds a value to a series of the last ten minutes.
 * @param {World} world
 * @param {string} name
 * @param {number} time_ms
 * @param {number | null | undefined} value
 */
function record(world, name, time_ms, value) {
  if (Number.isNaN(time_ms)) return;
  const samples = world.series.get(name) ?? [];
  const last = samples.at(-1);
  if (last && time_ms >= last.time_ms && time_ms - last.time_ms < trail_step_ms) return;
  const kept = before(samples, time_ms).filter((sample) => time_ms - sample.time_ms < trail_ms);
  world.series.set(name, [...kept, { time_ms, value: value ?? null }].slice(-samples_max));
}

/**
 * A slow mean, so that one long gap does not make an old value look fresh.
 * @param {World} world
 * @param {string} key
 * @param {number} gap_ms
 */
function updatePeriod(world, key, gap_ms) {
  if (!(gap_ms > 0)) return;
  const known_ms = world.periods.get(key);
  world.periods.set(
    key,
    known_ms === undefined ? gap_ms : known_ms + (Math.min(gap_ms, 4 * known_ms) - known_ms) / 8,
  );
}

/**
 * @param {World} world
 * @param {string} id
 * @param {FeedMessage} message
 */
function extendTrail(world, id, message) {
  const fix = fixOf(message);
  if (!fix) return;
  const trail = world.trails.get(id) ?? [];
  const last = trail.at(-1);
  const isSoon = last && fix.time_ms >= last.time_ms && fix.time_ms - last.time_ms < trail_step_ms;
  if (isSoon) return;
  const kept = before(trail, fix.time_ms).filter(({ time_ms }) => fix.time_ms - time_ms < trail_ms);
  world.trails.set(id, [...kept, fix].slice(-trail_fixes_max));
}

/**
 * @param {FeedMessage | undefined} message
 * @returns {Fix | undefined}
 */
export function fixOf(message) {
  const lat = numberOf(message, 'lat');
  const lon = numberOf(message, 'lon');
  if (message === undefined || lat === undefined || lon === undefined) return undefined;
  return { lat, lon, time_ms: Date.parse(message.time) };
}

/**
 * @param {FeedMessage | undefined} message
 * @param {string} name
 * @returns {number | undefined}
 */
export function numberOf(message, name) {
  const value = fieldOf(message, name);
  return typeof value === 'number' ? value : undefined;
}

/**
 * @param {FeedMessage | undefined} message
 * @param {string} name
 * @returns {unknown}
 */
export function fieldOf(message, name) {
  return field(message?.data, name);
}

/**
 * Assets in the order of the list, each with its depth: children below their parent.
 * @param {World} world
 * @param {(asset: LiveAsset) => boolean} isShown
 * @returns {readonly { readonly asset: LiveAsset, readonly depth: number }[]}
 */
export function assetTree({ assets }, isShown) {
  /** @type {{ asset: LiveAsset, depth: number }[]} */
  const rows = [];
  const placed = new Set();
  const ordered = [...assets.values()].sort(
    (a, b) => compare(a.type, b.type) || byName(a.name, b.name) || compare(a.id, b.id),
  );
  const children = Map.groupBy(ordered, ({ parent_id }) => parent_id);
  /** @type {(asset: LiveAsset, depth: number) => void} */
  const place = (asset, depth) => {
    // Two assets that name each other as parent must not cause an endless loop.
    if (placed.has(asset.id)) return;
    placed.add(asset.id);
    const shown = isShown(asset);
    if (shown) rows.push({ asset, depth });
    for (const child of children.get(asset.id) ?? []) place(child, shown ? depth + 1 : depth);
  };
  for (const asset of ordered) if (asset.parent_id === null || !assets.has(asset.parent_id)) place(asset, 0);
  for (const asset of ordered) place(asset, 0);
  return rows;
}

/**
 * @param {string} a
 * @param {string} b
 * @returns {number}
 */
function compare(a, b) {
  return a < b ? -1 : Number(a > b);
}
