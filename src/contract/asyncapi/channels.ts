/** Every channel of the contract with its messages, in the order in which a reader of the AsyncAPI document meets them. */
import { z } from 'zod';
import { announcement, commandList, roster } from '../assets.ts';
import { batch } from '../batch/batch.ts';
import { dropReport } from '../drops.ts';
import { edgeEvents, laneOfFeed, publishedFeeds, type FeedSet } from '../feeds.ts';
import { kitTelemetry } from '../kit.ts';
import type { Lane } from '../lanes.ts';
import { partnerChange, partnerRecord } from '../partners.ts';
import { kitState } from '../presence.ts';
import { cloudAck, kitConfig, syncRequest, taskCancel, taskDispatch, taskReport } from '../tasks.ts';
import { channels, downTopic, upTopic, type Down } from '../topics.ts';

export interface MessageSpec {
  readonly name: string;
  readonly summary: string;
  /** Of `data` for an envelope, else of the whole payload. */
  readonly schema: z.ZodType;
  /** `envelope`: JSON in an envelope. `bare`: JSON. `deflated`: JSON, compressed in zlib format. */
  readonly body: 'envelope' | 'bare' | 'deflated';
  /** On channels of feeds: the last level of the topic. */
  readonly feed?: string;
  /** What an empty payload means, where there may be one. */
  readonly empty?: string;
}

export interface ChannelSpec {
  readonly name: string;
  readonly direction: 'up' | 'down';
  readonly address: string;
  readonly summary: string;
  readonly retain: boolean;
  /** Class of the messages in the outbox; those without one do not pass through it, or are carriers of such. */
  readonly lane?: Lane;
  readonly messages: readonly MessageSpec[];
}

const kit_id = '{kit_id}';
const asset_id = '{asset_id}';
const task_id = '{task_id}';
const feed = '{feed}';

export const channelSpecs: readonly ChannelSpec[] = [
  up('state', {
    address: channels.state,
    summary: 'Presence of the kit: birth at each connect, will, clean stop',
    retain: true,
    messages: [
      { name: 'kitState', summary: 'Birth, will or clean stop', schema: kitState, body: 'envelope' },
    ],
  }),
  up('telemetry', {
    address: channels.telemetry,
    summary: 'Parts of the telemetry of the kit that changed',
    lane: 'kit',
    messages: [
      { name: 'kitTelemetry', summary: 'Parts of telemetry', schema: kitTelemetry, body: 'envelope' },
    ],
  }),
  up('roster', {
    address: channels.roster,
    summary: 'All assets of the kit: an announcement that is older and not named is of an asset that is gone',
    retain: true,
    lane: 'presence',
    messages: [{ name: 'roster', summary: 'Ids of all assets', schema: roster, body: 'envelope' }],
  }),
  up('asset', {
    address: channels.asset(asset_id),
    summary: 'What the connector knows of an asset',
    retain: true,
    lane: 'presence',
    messages: [
      {
        name: 'announcement',
        summary: 'An asset of the kit',
        schema: announcement,
        body: 'envelope',
        empty: 'follows the removal, so that the broker forgets the asset',
      },
      removal('assetRemoval', 'The asset is gone'),
    ],
  }),
  up('commands', {
    address: channels.commands(asset_id),
    summary: 'The enabled commands of an asset',
    retain: true,
    lane: 'presence',
    messages: [
      {
        name: 'commandList',
        summary: 'All enabled commands',
        schema: commandList,
        body: 'envelope',
        empty: 'follows the removal, so that the broker forgets the list',
      },
      removal('commandsRemoval', 'The asset is gone, and its commands'),
    ],
  }),
  up('feed', {
    address: channels.feed(asset_id, feed),
    summary: 'Measurements of an asset, at the rate that the kit allows',
    lane: 'feed',
    messages: feedMessages('feed'),
  }),
  up('event', {
    address: channels.event(asset_id, feed),
    summary: 'Edges that are never thinned: motion, detections, status of cameras, assets and links',
    lane: 'alarm',
    messages: feedMessages('alarm'),
  }),
  up('task', {
    address: channels.task(task_id),
    summary: 'Progress and result of a task',
    lane: 'task',
    messages: [{ name: 'taskReport', summary: 'A step of a task', schema: taskReport, body: 'envelope' }],
  }),
  up('batch', {
    address: channels.batch,
    summary: 'Many messages of the channels above in one: the backlog, and live messages on metered links',
    messages: [{ name: 'batch', summary: 'Messages in columns', schema: batch, body: 'deflated' }],
  }),
  up('partner', {
    address: channels.partner(asset_id),
    summary: 'What the kit has of a partner asset',
    retain: true,
    lane: 'presence',
    messages: [
      {
        name: 'partnerRecord',
        summary: 'A partner asset',
        schema: partnerRecord,
        body: 'envelope',
        empty: 'follows the removal, so that the broker forgets the asset',
      },
      removal('partnerRemoval', 'The partner asset is removed for good'),
    ],
  }),
  up('drops', {
    address: channels.drops,
    summary: 'Messages that were dropped before delivery',
    lane: 'task',
    messages: [{ name: 'dropReport', summary: 'Holes to expect', schema: dropReport, body: 'envelope' }],
  }),
  down({ kind: 'task', task_id }, 'A task for an asset; never retained', {
    name: 'taskDispatch',
    summary: 'A command with its payload and deadline',
    schema: taskDispatch,
  }),
  down({ kind: 'cancel', task_id }, 'Cancels a waiting task, or a running task if its device can stop', {
    name: 'taskCancel',
    summary: 'A wish to cancel',
    schema: taskCancel,
    empty: 'the same as {}',
  }),
  down({ kind: 'ack' }, 'What the cloud has stored', {
    name: 'cloudAck',
    summary: 'Ranges of sequence numbers',
    schema: cloudAck,
  }),
  down({ kind: 'sync' }, 'Asks for everything retained again', {
    name: 'syncRequest',
    summary: 'A wish',
    schema: syncRequest,
    empty: 'the same as {}',
  }),
  down({ kind: 'partner', asset_id }, 'What the cloud has of a partner asset; never retained', {
    name: 'partnerChange',
    summary: 'A partner asset with its newest fix, or its removal',
    schema: partnerChange,
  }),
  down({ kind: 'config' }, 'Rates and caps, bounded by the configuration of the kit', {
    name: 'kitConfig',
    summary: 'Wishes; {} for none',
    schema: kitConfig,
  }),
];

function up(
  name: string,
  spec: Pick<ChannelSpec, 'address' | 'summary' | 'messages'> & { retain?: boolean; lane?: Lane },
): ChannelSpec {
  return { retain: false, ...spec, name, direction: 'up', address: upTopic(kit_id, spec.address) };
}

/** A removal has a stamp like every message; it is published without the retain flag. */
function removal(name: string, what: string): MessageSpec {
  return {
    name,
    summary: `${what}: not retained, and directly followed by the empty payload`,
    schema: z.null(),
    body: 'envelope',
  };
}

function down(to: Down, summary: string, message: Omit<MessageSpec, 'body'>): ChannelSpec {
  return {
    name: `down_${to.kind}`,
    direction: 'down',
    address: downTopic(kit_id, to),
    summary,
    retain: to.kind === 'ack' || to.kind === 'config',
    messages: [{ ...message, body: 'bare' }],
  };
}

function feedMessages(lane: ReturnType<typeof laneOfFeed>): MessageSpec[] {
  const families: readonly (readonly [string, FeedSet])[] = [
    ...Object.entries(publishedFeeds),
    ['', edgeEvents],
  ];
  return families.flatMap(([kind, feeds]) =>
    Object.entries(feeds)
      .filter(([name]) => laneOfFeed(name) === lane)
      .map(([name, schema]) => ({
        name: camelCase(`${kind}_${name}`),
        summary: kind ? `Feed ${name} of ${kind} assets` : `Change of ${name.replace('_', ' ')}`,
        schema,
        body: 'envelope',
        feed: name,
      })),
  );
}

function camelCase(snake_case: string): string {
  const words = snake_case.split('_').filter((word) => word !== '');
  return words.map((word, at) => (at === 0 ? word : word.charAt(0).toUpperCase() + word.slice(1))).join('');
}
