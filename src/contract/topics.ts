/**
 * Every MQTT topic of the contract is built and read here; no other file has a `/` of a topic in a string.
 * A channel is the part below `k1/{kit_id}/up/`: the outbox stores channels, so that a row does not repeat the kit.
 */
import { z } from 'zod';

export const contract_major = 'k1';
/** `major.minor`, announced in the birth message; minor versions only add. */
export const contract_version = '1.2';

export const channels = {
  state: 'state',
  telemetry: 'telemetry',
  batch: 'batch',
  drops: 'drops',
  roster: 'roster',
  asset: (asset_id: string) => `asset/${asset_id}`,
  commands: (asset_id: string) => `asset/${asset_id}/commands`,
  feed: (asset_id: string, feed: string) => `feed/${asset_id}/${feed}`,
  event: (asset_id: string, feed: string) => `event/${asset_id}/${feed}`,
  task: (task_id: string) => `task/${task_id}`,
  partner: (asset_id: string) => `partner/${asset_id}`,
  file: (file_id: string) => `file/${file_id}`,
  whep: (id: string) => `whep/${id}`,
} as const;

/** Where setup and doctor try what a login may write; it says nothing. */
export const trial_channel = 'doctor';

/** The first word of a channel is its kind, which selects the subscribers: `feed`, `event`, `task`, `asset`, `telemetry`, ... */
export function channelKind(channel: string): string {
  const slash = channel.indexOf('/');
  return slash < 0 ? channel : channel.slice(0, slash);
}

export function upTopic(kit_id: string, channel: string): string {
  return `${contract_major}/${kit_id}/up/${channel}`;
}

/** Everything below `k1/{kit_id}/down/`, which a kit may read. */
export function downFilter(kit_id: string): string {
  return `${contract_major}/${kit_id}/down/#`;
}

/**
 * What a kit subscribes to. What may be retained is subscribed to by its exact topic: some brokers (RabbitMQ) give no
 * retained messages to subscriptions with wildcards.
 */
export function downFilters(kit_id: string): readonly string[] {
  return ['task/#', 'ack', 'sync', 'config', 'partner/#', 'file/#', 'whep'].map(
    (path) => `${contract_major}/${kit_id}/down/${path}`,
  );
}

export function downTopic(kit_id: string, down: Down): string {
  const path =
    'task_id' in down
      ? `task/${down.task_id}${down.kind === 'cancel' ? '/cancel' : ''}`
      : 'asset_id' in down
        ? `partner/${down.asset_id}`
        : 'file_id' in down
          ? `file/${down.file_id}`
          : down.kind;
  return `${contract_major}/${kit_id}/down/${path}`;
}

export type Down =
  | { readonly kind: 'task' | 'cancel'; readonly task_id: string }
  | { readonly kind: 'partner'; readonly asset_id: string }
  | { readonly kind: 'file'; readonly file_id: string }
  | { readonly kind: z.output<typeof wholeDown> };

/** What a topic below `k1/{kit_id}/down/` asks for; undefined when the contract does not know it. */
export function parseDown(kit_id: string, topic: string): Down | undefined {
  const prefix = `${contract_major}/${kit_id}/down/`;
  if (!topic.startsWith(prefix)) return undefined;
  const [kind = '', id, verb, ...rest] = topic.slice(prefix.length).split('/');
  if (rest.length > 0 || id === '') return undefined;
  if (id === undefined) return wholeOf(kind);
  if (verb === undefined) return downOf(kind, id);
  return kind === 'task' && verb === 'cancel' ? { kind: 'cancel', task_id: id } : undefined;
}

function downOf(kind: string, id: string): Down | undefined {
  switch (kind) {
    case 'task':
      return { kind, task_id: id };
    case 'partner':
      return { kind, asset_id: id };
    case 'file':
      return { kind, file_id: id };
    default:
      return undefined;
  }
}

/** What the cloud subscribes to: everything that kits publish. */
export const upFilter = `${contract_major}/+/up/#`;

/** All that kits publish retained. */
export const retainedFilters = [
  `${contract_major}/+/up/state`,
  `${contract_major}/+/up/roster`,
  `${contract_major}/+/up/asset/#`,
  `${contract_major}/+/up/partner/#`,
] as const;

/** The kit and the channel of a topic below `k1/{kit_id}/up/`; undefined for any other topic. */
export function parseUp(topic: string): { readonly kit_id: string; readonly channel: string } | undefined {
  const [major, kit_id, direction, ...rest] = topic.split('/');
  if (major !== contract_major || !kit_id || direction !== 'up' || rest.length === 0) return undefined;
  return { kit_id, channel: rest.join('/') };
}

/** The viewer whose offer a topic answers (`whep.ts`), and the kit that does; undefined for any other topic. */
export function parseWhep(topic: string): { readonly kit_id: string; readonly id: string } | undefined {
  const { kit_id, channel } = parseUp(topic) ?? {};
  const [, id] = /^whep\/([^/]+)$/u.exec(channel ?? '') ?? [];
  return kit_id !== undefined && id !== undefined ? { kit_id, id } : undefined;
}

export type Channel =
  | { readonly kind: z.output<typeof wholeKit> }
  | { readonly kind: 'asset' | 'commands' | 'partner'; readonly asset_id: string }
  | { readonly kind: 'feed' | 'event'; readonly asset_id: string; readonly feed: string }
  | { readonly kind: 'task'; readonly task_id: string }
  | { readonly kind: 'file'; readonly file_id: string };

/** What a channel carries; undefined when the contract does not know it, as with channels of a later version. */
export function readChannel(channel: string): Channel | undefined {
  const whole = wholeKit.safeParse(channel).data;
  if (whole) return { kind: whole };
  const words = channel.split('/');
  const [kind, id = '', last = ''] = words;
  switch (`${kind} ${words.length}`) {
    case 'asset 2':
      return { kind: 'asset', asset_id: id };
    case 'partner 2':
      return { kind: 'partner', asset_id: id };
    case 'task 2':
      return { kind: 'task', task_id: id };
    case 'file 2':
      return { kind: 'file', file_id: id };
    case 'asset 3':
      return last === 'commands' ? { kind: 'commands', asset_id: id } : undefined;
    case 'feed 3':
      return { kind: 'feed', asset_id: id, feed: last };
    case 'event 3':
      return { kind: 'event', asset_id: id, feed: last };
    default:
      return undefined;
  }
}

/** The text of a channel: what `readChannel` reads. */
export function channelOf(channel: Channel): string {
  if ('task_id' in channel) return channels.task(channel.task_id);
  if ('file_id' in channel) return channels.file(channel.file_id);
  if ('feed' in channel) return channels[channel.kind](channel.asset_id, channel.feed);
  return 'asset_id' in channel ? channels[channel.kind](channel.asset_id) : channels[channel.kind];
}

const wholeDown = z.enum(['ack', 'sync', 'config', 'whep']);
function wholeOf(kind: string): Down | undefined {
  const { data } = wholeDown.safeParse(kind);
  return data && { kind: data };
}

const wholeKit = z.enum(['state', 'telemetry', 'batch', 'drops', 'roster']);
