/** The part of the connector between an accepted message and the broker: outbox and uplink, joined as the daemon joins them. */
import { readFileSync } from 'node:fs';
import type { Position } from '../../../src/contract/envelope.ts';
import type { JsonObject } from '../../../src/contract/json.ts';
import type { Lane } from '../../../src/contract/lanes.ts';
import { channels } from '../../../src/contract/topics.ts';
import type { AckRule } from '../../../src/kit/outbox/api.ts';
import { openOutbox, type Outbox } from '../../../src/kit/outbox/live/outbox.ts';
import type { StoreLimits } from '../../../src/kit/outbox/protocol.ts';
import { vouched, systemClock, type Clock } from '../../../src/platform/clock.ts';
import type { BrokerOptions } from '../../../src/mqtt/broker.ts';
import type { OpenTransport } from '../../../src/mqtt/socket.ts';
import type { Proxy } from '../../../src/platform/proxy.ts';
import type { Routes } from '../../../src/platform/linux/route-lookup.ts';
import { Uplink } from '../../../src/kit/uplink/uplink.ts';
import { test_drones, test_kit } from '../gps.ts';

export interface ConnectorOptions {
  /** The buffer file. */
  readonly file: string;
  readonly url: string;
  /** Brokers that are used where it does not work. */
  readonly other_urls?: readonly string[];
  readonly kit_id?: string;
  readonly username?: string;
  readonly password?: string;
  /** Path of the authority's certificate. */
  readonly ca?: string;
  /** Left out: none. */
  readonly proxy?: Proxy | null;
  /** Credentials as they are at the next connect. */
  readonly renew?: () => Promise<Partial<BrokerOptions>>;
  /** From 0 to 1; spreads the pauses. */
  readonly random?: () => number;
  readonly ack?: AckRule;
  readonly protocol?: 'auto' | '5' | '3.1.1';
  readonly clock?: Clock;
  readonly limits?: Partial<StoreLimits>;
  readonly window_messages?: number;
  readonly packet_ms?: number;
  readonly backlog_kbps?: number;
  /** Rows in a batch of the backlog; 1: every row is a message of its own. */
  readonly batch_rows?: number;
  /** Time until the first attempt to connect. */
  readonly wait_ms?: number;
  readonly routes?: Routes;
  /** Monotonic time of the uplink. */
  readonly now?: () => number;
  readonly openTransport?: OpenTransport;
  /** The first pause before another attempt; the longest is ten times as long. */
  readonly retry_ms?: number;
  readonly connect_timeout_ms?: number;
  readonly onConnected?: () => void;
  readonly onDisconnected?: () => void;
  readonly log?: (sentence: string, facts: object) => void;
}

export interface Connector {
  readonly outbox: Outbox;
  readonly uplink: Uplink;
  /** Messages that the broker has acknowledged, batched ones counted singly. */
  readonly acknowledged: number;
  /** Accepts a position of one of the test's drones. */
  send(lane: Lane, source: number, data: JsonObject): Position;
  /** Stops as the daemon does at SIGTERM; once. */
  stop(): Promise<void>;
}

/** Room for everything that a test puts in, and nothing expires. */
export const roomy_limits: StoreLimits = {
  bytes_max: 2 ** 32,
  rows_max: 5_000_000,
  free_bytes_min: 0,
  age_max_ms: 90 * 86_400_000,
  journal_rows_max: 1_000,
};

export async function startConnector(options: ConnectorOptions): Promise<Connector> {
  const say = options.log ?? (() => undefined);
  const write = (facts: object, sentence: string): void => say(sentence, facts);
  const log = { debug: write, info: write, warn: write, error: write };
  const { batch_rows, retry_ms = 200 } = options;
  const clock = options.clock ?? systemClock({ evidence: vouched });
  const outbox = await openOutbox({
    file: options.file,
    limits: { ...roomy_limits, ...options.limits },
    clock,
    kit_id: options.kit_id ?? test_kit,
    log,
    ...(batch_rows === undefined ? {} : { form: { batch_rows, batch_bytes: 64 * 1024 } }),
  });
  let acknowledged = 0;
  const { dispatch } = outbox;
  const count = dispatch.acknowledged.bind(dispatch);
  dispatch.acknowledged = (outgoing, how) => {
    if (how.hasSubscribers) acknowledged += outgoing.rows;
    count(outgoing, how);
  };
  const disconnected = dispatch.disconnected.bind(dispatch);
  dispatch.disconnected = () => {
    disconnected();
    options.onDisconnected?.();
  };
  const uplink = new Uplink({
    kit_id: options.kit_id ?? test_kit,
    broker: {
      ...brokerOf(options),
      others: (options.other_urls ?? []).map((url) => ({ ...brokerOf(options), url })),
    },
    random: options.random,
    renew: options.renew && (async (broker) => ({ ...broker, ...(await options.renew?.()) })),
    pace: {
      window_messages: options.window_messages ?? 64,
      packetMs: () => options.packet_ms ?? 0,
      backlogKbps: () => options.backlog_kbps ?? 0,
      messagesPerSMax: () => 0,
    },
    retry: { first_ms: retry_ms, max_ms: 10 * retry_ms },
    now: options.now,
    openTransport: options.openTransport,
    epoch: () => outbox.epoch,
    wait_ms: options.wait_ms,
    clock,
    dispatch,
    inbox: {
      task: async () => undefined,
      cancel: () => undefined,
      ack: async (ack) => outbox.confirm(ack),
      sync: () => undefined,
      config: () => undefined,
      partner: () => undefined,
      file: () => undefined,
      whep: () => undefined,
    },
    state: ({ online, reason }) => ({ online, reason }),
    onConnected: () => options.onConnected?.(),
    routes: options.routes,
    log,
  });
  const end = new AbortController();
  const running = uplink.run(end.signal);
  let stopped: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    end.abort();
    await running;
    await outbox.close();
  };
  return {
    outbox,
    uplink,
    get acknowledged() {
      return acknowledged;
    },
    send: (lane, source, data) => outbox.append({ channel: channelOf(lane, source), lane, data }),
    stop: async () => (stopped ??= stop()),
  };
}

function brokerOf(options: ConnectorOptions) {
  const { url, username, password, ca } = options;
  return {
    url,
    username: username ?? '',
    password,
    ca: ca === undefined ? undefined : readFileSync(ca, 'utf8'),
    cert: undefined,
    key: undefined,
    proxy: options.proxy ?? null,
    protocol: options.protocol ?? 'auto',
    keepalive_s: 30,
    connect_timeout_ms: options.connect_timeout_ms ?? 5_000,
    ack: options.ack ?? 'auto',
  } as const;
}

/** A channel that suits the lane. */
export function channelOf(lane: Lane, source: number): string {
  const drone = test_drones[source % test_drones.length] ?? test_drones[0];
  if (lane === 'feed') return channels.feed(drone, 'gps');
  if (lane === 'alarm') return channels.event(drone, 'gps');
  if (lane === 'presence') return channels.asset(drone);
  return lane === 'task' ? channels.task(drone) : channels.telemetry;
}
