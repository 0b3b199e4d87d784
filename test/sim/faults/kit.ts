/** Faults of the kit's process, disk and clock. */
import { faultOf } from './fault.ts';
import type { Scene } from '../scene.ts';

/** The disk is not to be relied on for so long. */
function trouble({ kit, world }: Scene, ms: number): void {
  kit.troubles.push({ from_ms: world.now_ms, to_ms: world.now_ms + ms });
}

export const kitFaults = {
  kill: faultOf({
    per_minute: 1,
    draw: (rng) => ({ ms: Math.round(rng.scale(20, 15_000)) }),
    apply: (scene, { ms }) => {
      scene.disturb(ms);
      scene.kit.kill('process');
      scene.later(ms, () => scene.kit.start());
    },
  }),
  power: faultOf({
    per_minute: 0.7,
    draw: (rng) => ({ ms: Math.round(rng.scale(500, 30_000)) }),
    apply: (scene, { ms }) => {
      scene.disturb(ms);
      scene.kit.kill('power');
      scene.later(ms, () => scene.kit.start());
    },
  }),
  stop: faultOf({
    per_minute: 0.7,
    draw: (rng) => ({ ms: Math.round(rng.scale(20, 10_000)) }),
    apply: (scene, { ms }) => {
      scene.disturb(ms + 10_000);
      scene.kit.stop(() => scene.later(ms, () => scene.kit.start()));
    },
  }),
  kit_freeze: faultOf({
    per_minute: 0.3,
    draw: (rng) => ({ ms: Math.round(rng.scale(50, 8_000)) }),
    apply: (scene, { ms }) => {
      scene.disturb(ms);
      // Nothing is written meanwhile.
      trouble(scene, ms);
      const { run } = scene.kit;
      if (run) run.proc.frozen_until_ms = scene.world.now_ms + ms;
    },
  }),
  disk_fail: faultOf({
    per_minute: 0.7,
    draw: (rng) => ({
      ms: Math.round(rng.scale(100, 40_000)),
      how: rng.pick(['SQLITE_IOERR_WRITE', 'SQLITE_READONLY', 'SQLITE_IOERR_FSYNC']),
    }),
    apply: (scene, { ms, how }) => {
      trouble(scene, ms);
      const fault = how === 'SQLITE_READONLY' || how === 'SQLITE_IOERR_FSYNC' ? how : 'SQLITE_IOERR_WRITE';
      scene.hold(ms, scene.kit.disk.state, { fault }, { fault: undefined });
    },
  }),
  disk_unsure: faultOf({
    per_minute: 0.4,
    draw: (rng) => ({ ms: Math.round(rng.scale(100, 20_000)) }),
    apply: (scene, { ms }) => {
      trouble(scene, ms);
      scene.hold(ms, scene.kit.disk.state, { isUnsure: true }, { isUnsure: false });
    },
  }),
  disk_full: faultOf({
    per_minute: 0.3,
    draw: (rng) => ({ ms: Math.round(rng.scale(1_000, 30_000)) }),
    apply: (scene, { ms }) => {
      if (!scene.setting.hasReserve) return;
      trouble(scene, ms);
      scene.room_was_short = true;
      scene.hold(ms, scene.kit.disk.state, { full: true }, { full: false });
    },
  }),
  disk_hang: faultOf({
    per_minute: 0.5,
    draw: (rng) => ({ ms: Math.round(rng.scale(200, 30_000)) }),
    apply: (scene, { ms }) => {
      trouble(scene, ms);
      const { port } = scene.kit;
      // A shorter hang does not end a longer one that is under way.
      port.hangs_until_ms = Math.max(port.hangs_until_ms, scene.world.now_ms + ms);
    },
  }),
  disk_slow: faultOf({
    per_minute: 0.4,
    draw: (rng) => ({ ms: Math.round(rng.scale(1_000, 30_000)), n: Math.round(rng.scale(5, 3_000)) }),
    apply: (scene, { ms, n }) => {
      trouble(scene, ms);
      scene.hold(ms, scene.kit.port, { slow_ms: n }, { slow_ms: 0 });
    },
  }),
  clock_step: faultOf({
    per_minute: 0.4,
    draw: (rng) => ({
      ms: Math.round(rng.scale(1_000, 40_000)),
      n: Math.round(rng.scale(1_000, 7_200_000)),
      how: rng.pick(['ahead', 'behind']),
    }),
    apply: (scene, { ms, n, how }) => {
      scene.clock_stepped = true;
      const wall_offset_ms = how === 'ahead' ? n : -n;
      scene.hold(ms, scene.kit.machine, { wall_offset_ms }, { wall_offset_ms: 0 });
    },
  }),
} as const;
