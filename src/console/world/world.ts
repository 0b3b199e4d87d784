/** Holds the state of the kit as the frames of the service report it. */
import { field, own } from '../json.ts';
import { byName } from './text.ts';
import type {
  FeedMessage,
  Fix,
  KitFile,
  KitNow,
  LiveAsset,
  QueueResource,
  ServerFrame,
  Snapshot,
  TaskResource,
  World,
} from '../types.d.ts';

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

export function emptyWorld(): World {
  return {
    kit: null,
    queue: null,
    reports: [],
    assets: new Map(),
    feeds: new Map(),
    commands: new Map(),
    tasks: new Map(),
    files: new Map(),
    fileLists: new Map(),
    trails: new Map(),
    latencies: new Map(),
    periods: new Map(),
    linkEdges: new Map(),
    series: new Map(),
  };
}

/** Applies one frame. Trails and intervals outlive a snapshot: they belong to the page. */
export function takeFrame(world: World, frame: ServerFrame) {
  if ('asset_id' in frame) {
    takeOfAsset(world, frame);
    return;
  }
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
    case 'task':
      takeTask(world, frame.task);
      break;
    case 'file':
      takeFile(world, frame.file);
      break;
    case 'alarm':
    case 'heartbeat':
    // The session leaves its page.
    case 'kit_gone':
    default:
  }
}

function takeOfAsset(world: World, frame: Extract<ServerFrame, { asset_id: string }>) {
  const { asset_id } = frame;
  if (frame.type === 'asset_gone') forget(world, asset_id);
  else if (frame.type === 'commands') world.commands.set(asset_id, frame.commands);
  else takeFeed(world, asset_id, frame.feed, frame.message);
}

/** Takes a frame. What was deleted at the service is not shown any more; what the kit has given up is, with the reason. */
function takeFile({ files }: World, file: KitFile) {
  if (file.state === 'dropped' && file.reason === undefined) files.delete(file.id);
  else files.set(file.id, file);
}

function takeSnapshot(world: World, { kit, queue, assets, feeds, commands, tasks }: Snapshot) {
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
  // What became of files meanwhile is asked for when they are shown.
  world.fileLists.clear();
  for (const task of tasks) takeTask(world, task);
}

function takeKit(world: World, kit: KitNow) {
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

/** @param time_ms of its links */
function recordKit(world: World, kit: KitNow, time_ms: number) {
  for (const { name, status } of kit.wans)
    record(world, `up ${name}`, time_ms, status ? Number(status !== 'offline') : null);
  record(world, 'battery', Date.parse(kit.times['battery'] ?? ''), kit.battery);
  record(world, 'cpu', Date.parse(kit.times['gateway'] ?? ''), kit.gateway?.cpu_pct);
}

function takeQueue(world: World, queue: QueueResource) {
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

/** Drops samples that are later than `time_ms`: the clock of the kit was ahead then, and their times are invalid. */
function before<T extends { readonly time_ms: number }>(
  samples: readonly T[],
  time_ms: number,
): readonly T[] {
  return samples.filter((sample) => sample.time_ms < time_ms);
}

/**
 * Estimates when the queue of the kit will be empty, from the first and last report of these minutes. Undefined when it
 * is empty, does not shrink, or was reported only once.
 * @param time_ms the server's clock
 */
export function drainsIn({ reports }: World, time_ms: number): number | undefined {
  const first = reports[0];
  const last = reports.at(-1);
  if (!first || !last || time_ms - last.time_ms > reports_ms) return undefined;
  const span_ms = last.time_ms - first.time_ms;
  const gone = first.rows - last.rows;
  if (last.rows === 0 || gone <= 0 || span_ms < drain_over_ms) return undefined;
  return (last.rows * span_ms) / gone;
}

function forget(world: World, id: string) {
  world.assets.delete(id);
  world.feeds.delete(id);
  world.commands.delete(id);
  world.trails.delete(id);
  for (const map of [world.periods, world.series])
    for (const key of map.keys()) if (key.startsWith(`${id} `)) map.delete(key);
}

function takeTask(world: World, task: TaskResource) {
  world.tasks.set(task.id, task);
  if (world.tasks.size <= tasks_max) return;
  const [oldest] = [...world.tasks.values()].sort(
    (a, b) => Date.parse(a.created_at) - Date.parse(b.created_at),
  );
  if (oldest) world.tasks.delete(oldest.id);
}

function takeFeed(world: World, id: string, feed: string, message: FeedMessage) {
  const feeds = world.feeds.get(id) ?? {};
  const before = own(feeds, feed);
  if (before) updatePeriod(world, `${id} ${feed}`, Date.parse(message.time) - Date.parse(before.time));
  world.feeds.set(id, { ...feeds, [feed]: message });
  extend(world, id, feed, message);
}

/** Takes from a message what the page keeps over time. */
function extend(world: World, id: string, feed: string, message: FeedMessage) {
  if (feed === 'gps') extendTrail(world, id, message);
  if (feed === 'link_status') takeLinkEdge(world, message);
  const [name, field_name] = own(recorded, feed) ?? [];
  if (name && field_name)
    record(world, `${id} ${name}`, Date.parse(message.time), numberOf(message, field_name));
}

/** Feeds whose last minutes are drawn: the name of the series, and the field. */
const recorded: Readonly<Record<string, readonly [string, string]>> = {
  gps: ['height', 'relative_alt_m'],
  battery: ['battery', 'remaining_pct'],
  radio: ['radio', 'rssi'],
};

/** Keeps what links reported of their changes: since when a link is offline, and why. */
function takeLinkEdge(world: World, message: FeedMessage) {
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

/** Adds a value to a series of the last ten minutes. */
function record(world: World, name: string, time_ms: number, value: number | null | undefined) {
  if (Number.isNaN(time_ms)) return;
  const samples = world.series.get(name) ?? [];
  const last = samples.at(-1);
  if (last && time_ms >= last.time_ms && time_ms - last.time_ms < trail_step_ms) return;
  const kept = before(samples, time_ms).filter((sample) => time_ms - sample.time_ms < trail_ms);
  world.series.set(name, [...kept, { time_ms, value: value ?? null }].slice(-samples_max));
}

/** A slow mean, so that one long gap does not make an old value look fresh. */
function updatePeriod(world: World, key: string, gap_ms: number) {
  if (!(gap_ms > 0)) return;
  const known_ms = world.periods.get(key);
  world.periods.set(
    key,
    known_ms === undefined ? gap_ms : known_ms + (Math.min(gap_ms, 4 * known_ms) - known_ms) / 8,
  );
}

function extendTrail(world: World, id: string, message: FeedMessage) {
  const fix = fixOf(message);
  if (!fix) return;
  const trail = world.trails.get(id) ?? [];
  const last = trail.at(-1);
  const isSoon = last && fix.time_ms >= last.time_ms && fix.time_ms - last.time_ms < trail_step_ms;
  if (isSoon) return;
  const kept = before(trail, fix.time_ms).filter(({ time_ms }) => fix.time_ms - time_ms < trail_ms);
  world.trails.set(id, [...kept, fix].slice(-trail_fixes_max));
}

export function fixOf(message: FeedMessage | undefined): Fix | undefined {
  const lat = numberOf(message, 'lat');
  const lon = numberOf(message, 'lon');
  if (message === undefined || lat === undefined || lon === undefined) return undefined;
  return { lat, lon, time_ms: Date.parse(message.time) };
}

export function numberOf(message: FeedMessage | undefined, name: string): number | undefined {
  const value = fieldOf(message, name);
  return typeof value === 'number' ? value : undefined;
}

export function fieldOf(message: FeedMessage | undefined, name: string): unknown {
  return field(message?.data, name);
}

/** Assets in the order of the list, each with its depth: children below their parent. */
export function assetTree(
  { assets }: World,
  isShown: (asset: LiveAsset) => boolean,
): readonly { readonly asset: LiveAsset; readonly depth: number }[] {
  const rows: { asset: LiveAsset; depth: number }[] = [];
  const placed = new Set();
  const ordered = [...assets.values()].sort(
    (a, b) => compare(a.type, b.type) || byName(a.name, b.name) || compare(a.id, b.id),
  );
  const children = Map.groupBy(ordered, ({ parent_id }) => parent_id);
  const place: (asset: LiveAsset, depth: number) => void = (asset, depth) => {
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

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}
