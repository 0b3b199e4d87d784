/** A daemon as the control socket sees it: what it answers is set by the test. */
import type { CommandDefinition } from '../../../../src/contract/assets.ts';
import type {
  LocalApi,
  LocalDispatch,
  LocalUser,
  StatusReport,
  TailMessage,
  TaskView,
} from '../../../../src/kit/local/api.ts';
import { texts } from '../../../../drivers/links/texts.ts';

export const time = '2026-11-21T10:00:00.000Z';
export const drone = { id: 'a0000000-0000-4000-8000-000000000001', key: 'mavlink:1', name: 'Falcon' };
export const camera = { id: 'a0000000-0000-4000-8000-000000000002', key: 'onvif:2', name: 'Gate' };
const twin = { id: 'a0000000-0000-4000-8000-000000000003', key: 'onvif:3', name: 'gate' };

export function statusOf(changes: Partial<StatusReport> = {}): StatusReport {
  return {
    kit_id: '3f0c1f6e-52a4-4c0e-9d6b-1f2a7c9e4b10',
    kit_name: 'Kit 7',
    version: '0.1.0',
    started_at: time,
    uptime_s: 3_725,
    degraded: [],
    uplink: {
      state: 'connected',
      broker: 'mqtts://broker.example.com:8883',
      protocol: '5',
      since: time,
      detail: '',
      attempts: 0,
      next_try_ms: null,
      in_flight: 2,
      rtt_ms: 48.4,
      last_error: null,
      unheard: [],
    },
    outbox: {
      accepted: 120,
      delivered: 100,
      buffered: 15,
      dropped: { thinned: 5 },
      quarantined: 0,
      balanced: true,
      by_lane: { feed: { rows: 15, bytes: 3_000, memory_rows: 0 } },
      oldest: time,
      file_bytes: 81_920,
      health: { state: 'ok', detail: '' },
    },
    drivers: [
      {
        name: 'drones',
        driver: 'mavlink',
        state: 'up',
        since: time,
        reason: null,
        facts: { port: 14_550 },
      },
    ],
    assets: [assetOf(drone), assetOf(camera), assetOf(twin)],
    kit: { wans: [{ name: 'eth1', type: 'satellite', status: 'online', latency_ms: 48, rx_bps: 1_200_000 }] },
    links: [
      {
        name: 'eth1',
        type: 'satellite',
        status: 'online',
        isp: 'Skylink',
        ip: '8.8.4.4',
        reason: null,
        latency_ms: 48,
        packet_loss_pct: 0.5,
        rx_bps: 1_200_000,
        tx_bps: 3_000,
        usage: { today_rx_gb: 1.25, today_tx_gb: 0.05, month_rx_gb: 9, month_tx_gb: 1 },
      },
      {
        name: 'usb\u001B[31m0',
        type: 'cellular',
        status: 'offline',
        reason: texts.no_carrier,
      },
      { name: 'wlan0', type: 'wifi', reason: texts.first_probes },
    ],
    tasks: { pending: 0, running: 0, completed: 1, failed: 0, recent: [taskOf({ status: 'completed' })] },
    ...changes,
  };
}

function assetOf({ id, key, name }: typeof drone): StatusReport['assets'][number] {
  const feeds = { gps: { age_s: 0.4, messages: 12, coalesced: 3 } };
  return { id, key, name, type: 'drone', status: 'online', reason: null, last_seen_at: time, feeds };
}

const refused = {
  id: 8_589_934_593,
  lane: 'feed',
  channel: 'telemetry',
  time,
  code: 149,
  reason: 'packet too large',
  body_bytes: 2,
};

export function taskOf(changes: Partial<TaskView> = {}): TaskView {
  return {
    id: 'c0000000-0000-4000-8000-000000000001',
    asset_id: drone.id,
    command_name: 'arm',
    payload: {},
    status: 'pending',
    result: {},
    created_at: time,
    updated_at: time,
    ...changes,
  };
}

export function messageOf(changes: Partial<TailMessage> = {}): TailMessage {
  return {
    kind: 'message',
    time,
    channel: `feed/${drone.id}/gps`,
    asset: drone,
    feed: 'gps',
    data: { lat: 52.1, lon: 4.3 },
    ...changes,
  };
}

export interface FakeDaemon extends LocalApi {
  readonly dispatched: (LocalDispatch & { readonly user: LocalUser })[];
  readonly selections: (readonly number[] | undefined)[];
  /** Gives a message to everyone who follows. */
  readonly say: (message: TailMessage) => void;
  /** Resolves once `count` readers follow. */
  readonly followed: (count: number) => Promise<void>;
}

function commandOf(
  about: Partial<CommandDefinition> & Pick<CommandDefinition, 'description' | 'name'>,
): CommandDefinition {
  const id = 'd0000000-0000-4000-8000-000000000001';
  return { id, risk_level: 'high', requires_approval: true, input_schema: {}, timeout_ms: 10_000, ...about };
}

export function fakeDaemon(overrides: Partial<LocalApi> = {}): FakeDaemon {
  const listeners = new Set<(message: TailMessage) => void>();
  const waiting: { count: number; resolve: () => void }[] = [];
  const changed = (): void =>
    waiting.filter(({ count }) => count === listeners.size).forEach(({ resolve }) => resolve());
  const dispatched: FakeDaemon['dispatched'] = [];
  const selections: (readonly number[] | undefined)[] = [];
  const select = async (ids: readonly number[] | undefined): Promise<number> => {
    selections.push(ids);
    return ids?.length ?? 3;
  };
  return {
    dispatched,
    selections,
    say: (message) => listeners.forEach((listener) => listener(message)),
    followed: async (count) =>
      new Promise((resolve) => {
        waiting.push({ count, resolve });
        changed();
      }),
    report: () => statusOf(),
    health: async () => ({ fault: null, summary: 'connected, 2 assets online' }),
    tail: (listener) => {
      listeners.add(listener);
      changed();
      return () => {
        listeners.delete(listener);
        changed();
      };
    },
    buffer: async () => ({
      lanes: [{ lane: 'feed', rows: 15, bytes: 3_000, memory_rows: 1, oldest: time }],
      quarantined: 1,
      file_bytes: 81_920,
      disk_free_bytes: 9e9,
    }),
    quarantine: async () => [refused],
    quarantined: async (id) => (id === refused.id ? { ...refused, body: '{}' } : undefined),
    retryQuarantined: select,
    discardQuarantined: select,
    dispatch: async (request, user) => {
      dispatched.push({ ...request, user });
      return taskOf({ command_name: request.command, payload: request.payload });
    },
    commands: () => [
      commandOf({ name: 'arm', description: 'Arm the motors.' }),
      commandOf({
        name: 'goto_waypoint',
        description: 'Fly to a point.',
        input_schema: {
          type: 'object',
          properties: {
            alt_m: { type: 'number', minimum: 2, maximum: 120, description: 'metres above home' },
            wait_for_arrival: { type: 'boolean', default: false, description: 'complete on arrival' },
            mode: { type: 'string', enum: ['AUTO', 'RTL'] },
          },
          required: ['alt_m'],
        },
      }),
    ],
    forgetAsset: () => drone,
    recentLog: () => ['{"level":"info","msg":"hello"}'],
    logLevels: () => ({ levels: [{ name: null, level: 'info', until: null }] }),
    changeLogLevels: ({ changes }) => ({
      levels: changes.map(({ name, level }) => ({ name, level: level ?? 'info', until: time })),
    }),
    tasks: async () => [taskOf()],
    task: async (id) =>
      id === taskOf().id ? taskOf({ status: 'completed', result: { armed: true } }) : undefined,
    ...overrides,
  };
}
