/** Faults of the service, and a cloud that says what it should not. */
import { downTopic } from '../../../src/contract/topics.ts';
import { faultOf } from './fault.ts';
import type { Scene } from '../scene.ts';

/** More than any epoch of a story has. */
const everything = 2 ** 33 - 1;

function tell({ broker, kit_id }: Scene, body: object, retain: boolean): void {
  broker.publish(downTopic(kit_id, { kind: 'ack' }), JSON.stringify(body), retain);
}

export const cloudFaults = {
  service_kill: faultOf({
    per_minute: 0.6,
    draw: (rng) => ({ ms: Math.round(rng.scale(20, 20_000)), how: rng.pick(['process', 'power']) }),
    apply: (scene, { ms, how }) => {
      const { service } = scene;
      service.kill(how === 'power' ? 'power' : 'process');
      scene.later(ms, () => service.start());
    },
  }),
  service_stop: faultOf({
    per_minute: 0.4,
    draw: (rng) => ({ ms: Math.round(rng.scale(2_000, 20_000)) }),
    apply: (scene, { ms }) => {
      const { service } = scene;
      service.stop();
      scene.later(ms, () => service.start());
    },
  }),
  service_freeze: faultOf({
    per_minute: 0.3,
    draw: (rng) => ({ ms: Math.round(rng.scale(100, 20_000)) }),
    apply: ({ service, world }, { ms }) => {
      if (service.run) service.run.proc.frozen_until_ms = world.now_ms + ms;
    },
  }),
  database: faultOf({
    per_minute: 0.4,
    draw: (rng) => ({ ms: Math.round(rng.scale(100, 20_000)), how: rng.pick(['fails', 'hangs']) }),
    apply: (scene, { ms, how }) => {
      const { service, world } = scene;
      if (how === 'hangs') service.hangs_until_ms = world.now_ms + ms;
      else service.refuses = true;
      scene.later(ms, () => {
        service.refuses = false;
      });
    },
  }),
  lie: faultOf({
    per_minute: 0.5,
    draw: (rng) => ({
      n: rng.int(1, 1_000_000),
      how: rng.pick(['everything', 'ahead', 'unknown epoch', 'old epoch', 'retained']),
    }),
    apply: (scene, { n, how }) => {
      scene.lied = true;
      const epoch = scene.kit.run?.outbox?.epoch ?? 1;
      const named = how === 'unknown epoch' ? n : how === 'old epoch' ? Math.max(1, epoch - 1) : epoch;
      const top = how === 'ahead' ? n : everything;
      tell(scene, { epoch: named, ranges: [[0, top]] }, how === 'retained');
    },
  }),
  sync: faultOf({
    per_minute: 0.5,
    draw: () => ({}),
    apply: ({ broker, kit_id }) => {
      broker.publish(downTopic(kit_id, { kind: 'sync' }), '{}', false);
    },
  }),
  again: faultOf({
    per_minute: 1,
    draw: (rng) => ({ n: rng.int(0, 1_000_000), how: rng.pick(['', '', 'retained']) }),
    apply: ({ broker, dispatches }, { n, how }) => {
      const sent = dispatches[n % Math.max(1, dispatches.length)];
      if (sent) broker.publish(sent.topic, sent.payload, how === 'retained');
    },
  }),
  nonsense: faultOf({
    per_minute: 0.3,
    draw: (rng) => ({ how: rng.pick(['ack', 'config', 'task', 'other']) }),
    apply: ({ broker, kit_id }, { how }) => {
      const topic = how === 'task' ? `task/${'0'.repeat(8)}-0000-4000-8000-${'0'.repeat(12)}` : how;
      broker.publish(`k1/${kit_id}/down/${topic}`, '{"epoch":"x","ranges":7}', false);
    },
  }),
} as const;
