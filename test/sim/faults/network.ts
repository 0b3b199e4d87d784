/** Faults of the network and of the broker. */
import { faultOf } from './fault.ts';
import type { Scene } from '../scene.ts';

function linkOf({ kit_link, service_link }: Scene, how: string) {
  return how.startsWith('service') ? service_link : kit_link;
}

/** Notes that the way between kit and broker is not to be relied on. */
function disturb(scene: Scene, how: string, ms: number): void {
  if (!how.startsWith('service')) scene.disturb(ms);
}

const either = ['kit', 'kit', 'service'] as const;
const not_authorised = 0x87;
export const receive_maximum_default = 1_000;
const quota_exceeded = 0x97;
const server_unavailable = 0x88;

export const networkFaults = {
  reset: faultOf({
    per_minute: 2,
    draw: (rng) => ({ how: rng.pick(either) }),
    apply: (scene, { how }) => {
      disturb(scene, how, 0);
      for (const connection of scene.network.of(linkOf(scene, how))) connection.reset();
    },
  }),
  cut: faultOf({
    per_minute: 0.4,
    draw: (rng) => ({ ms: Math.round(rng.scale(1_000, 30_000)), n: rng.int(5, 80) }),
    apply: (scene, { ms, n }) => {
      scene.disturb(ms);
      const rng = scene.rng.fork(`cut ${scene.world.now_ms}`);
      const cut = (client_id: string): boolean => client_id === scene.kit_id && rng.chance(n / 100);
      scene.hold(ms, scene.broker.rules, { cut }, { cut: () => false });
    },
  }),
  down: faultOf({
    per_minute: 1,
    draw: (rng) => ({ ms: Math.round(rng.scale(200, 60_000)), how: rng.pick(either) }),
    apply: (scene, { ms, how }) => {
      disturb(scene, how, ms);
      const link = linkOf(scene, how);
      link.down_until_ms = Math.max(link.down_until_ms, scene.world.now_ms + ms);
    },
  }),
  half_open: faultOf({
    per_minute: 0.7,
    draw: (rng) => ({
      how: rng.pick(['kit up', 'kit down', 'kit both', 'service up', 'service down', 'service both']),
    }),
    apply: (scene, { how }) => {
      disturb(scene, how, 60_000);
      const way = how.endsWith('up') ? 'up' : how.endsWith('down') ? 'down' : 'both';
      for (const connection of scene.network.of(linkOf(scene, how))) connection.halfOpen(way);
    },
  }),
  slow: faultOf({
    per_minute: 0.7,
    draw: (rng) => ({
      ms: Math.round(rng.scale(1_000, 40_000)),
      n: Math.round(rng.scale(20, 3_000)),
      how: rng.pick(either),
    }),
    apply: (scene, { ms, n, how }) => {
      disturb(scene, how, ms + 4 * n);
      const link = linkOf(scene, how);
      const { latency_ms } = link;
      const during = { latency_ms: n, bytes_per_ms: n > 200 ? 32 : 0 };
      scene.hold(ms, link, during, { latency_ms, bytes_per_ms: 0 });
    },
  }),
  broker_kill: faultOf({
    per_minute: 0.6,
    draw: (rng) => ({ ms: Math.round(rng.scale(50, 20_000)), how: rng.pick(['keeps', 'keeps', 'loses']) }),
    apply: (scene, { ms, how }) => {
      const { broker, network } = scene;
      const proc = broker.proc_now;
      if (!proc) return;
      scene.disturb(ms);
      network.lost(proc, false);
      broker.kill(how === 'keeps');
      scene.later(ms, () => {
        if (!broker.proc_now) broker.start();
      });
    },
  }),
  /** PUBACKs come late and in any order, and few messages may wait for one. */
  acks_late: faultOf({
    per_minute: 0.5,
    draw: (rng) => ({ ms: Math.round(rng.scale(2_000, 30_000)), n: rng.int(1, 20) }),
    apply: (scene, { ms, n }) => {
      const { rules } = scene.broker;
      const rng = scene.rng.fork(`acks ${scene.world.now_ms}`);
      const reset = (): void => {
        scene.disturb(0);
        for (const connection of scene.network.of(scene.kit_link)) connection.reset();
      };
      rules.receive_maximum = n;
      rules.ack_ms = (client_id) => (client_id === scene.kit_id ? Math.round(rng.scale(1, 400)) : 0);
      scene.disturb(ms);
      // A client hears of another limit when it connects.
      reset();
      scene.later(ms, () => {
        rules.receive_maximum = receive_maximum_default;
        rules.ack_ms = () => 0;
        reset();
      });
    },
  }),
  broker_freeze: faultOf({
    per_minute: 0.5,
    draw: (rng) => ({ ms: Math.round(rng.scale(100, 20_000)) }),
    apply: (scene, { ms }) => {
      scene.disturb(ms);
      const proc = scene.broker.proc_now;
      if (proc) proc.frozen_until_ms = scene.world.now_ms + ms;
    },
  }),
  acl: faultOf({
    per_minute: 0.6,
    draw: (rng) => ({
      ms: Math.round(rng.scale(500, 40_000)),
      how: rng.pick(['feed', 'event', 'task', 'asset', 'batch', 'up']),
    }),
    apply: (scene, { ms, how }) => {
      const { rules } = scene.broker;
      const denied = how === 'up' ? '/up/' : `/up/${how}`;
      const before = rules.refuse;
      scene.refused = true;
      const refuse: typeof before = (client_id, topic) =>
        client_id === scene.kit_id && topic.includes(denied) ? not_authorised : before(client_id, topic);
      scene.hold(ms, rules, { refuse }, { refuse: () => 0 });
    },
  }),
  quota: faultOf({
    per_minute: 0.5,
    draw: (rng) => ({ ms: Math.round(rng.scale(200, 15_000)) }),
    apply: (scene, { ms }) => {
      scene.refused = true;
      scene.disturb(ms);
      const refuse = (client_id: string): number => (client_id === scene.kit_id ? quota_exceeded : 0);
      scene.hold(ms, scene.broker.rules, { refuse }, { refuse: () => 0 });
    },
  }),
  connack: faultOf({
    per_minute: 0.3,
    draw: (rng) => ({ ms: Math.round(rng.scale(500, 20_000)) }),
    apply: (scene, { ms }) => {
      scene.disturb(ms);
      for (const connection of scene.network.of(scene.kit_link)) connection.reset();
      scene.hold(ms, scene.broker.rules, { connack: server_unavailable }, { connack: 0 });
    },
  }),
  packet_max: faultOf({
    per_minute: 0.3,
    draw: (rng) => ({ ms: Math.round(rng.scale(2_000, 60_000)), n: Math.round(rng.scale(1_500, 60_000)) }),
    apply: (scene, { ms, n }) => {
      const { broker } = scene;
      scene.refused = true;
      scene.disturb(ms);
      broker.rules.packet_bytes_max = n;
      broker.rules.hangUp = (client_id, _topic, bytes) => client_id === scene.kit_id && bytes > n;
      // A client hears of another limit when it connects.
      scene.later(ms, () => {
        broker.rules.packet_bytes_max = 0;
        broker.rules.hangUp = () => false;
        scene.disturb(0);
        for (const connection of scene.network.of(scene.kit_link)) connection.reset();
      });
    },
  }),
} as const;
