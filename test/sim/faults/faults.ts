/** Everything that can happen in a story: work and faults, each with how often and how it is done. */
import { cloudFaults } from './cloud.ts';
import { kitFaults } from './kit.ts';
import { networkFaults, receive_maximum_default } from './network.ts';
import { work } from './work.ts';
import type { Scene } from '../scene.ts';

export const faults = { ...work, ...networkFaults, ...kitFaults, ...cloudFaults };
export type FaultKind = keyof typeof faults;
export const faultKinds = Object.keys(faults).filter(isKind);

export function isKind(name: string): name is FaultKind {
  return Object.hasOwn(faults, name);
}

/** From now on nothing goes wrong any more. What was broken is whole again, and what was stopped runs. */
export function heal(scene: Scene): void {
  const { world, broker, kit, service, kit_link, service_link, setting } = scene;
  for (const link of [kit_link, service_link]) {
    link.down_until_ms = world.now_ms;
    link.bytes_per_ms = 0;
  }
  kit_link.latency_ms = Math.min(setting.latency_ms, 50);
  service_link.latency_ms = 2;
  if (!broker.proc_now) broker.start();
  if (broker.rules.packet_bytes_max > 0 || broker.rules.receive_maximum < receive_maximum_default)
    for (const connection of scene.network.of(kit_link)) connection.reset();
  Object.assign(broker.rules, {
    v5: true,
    packet_bytes_max: 0,
    receive_maximum: receive_maximum_default,
    ack_ms: () => 0,
    connack: 0,
    refuse: () => 0,
    hangUp: () => false,
    cut: () => false,
  });
  kit.disk.state.fault = undefined;
  kit.disk.state.isUnsure = false;
  kit.disk.state.full = false;
  if (setting.hasReserve) kit.disk.state.free_bytes = 8 * 1024 ** 3;
  Object.assign(kit.port, { hangs_until_ms: world.now_ms, slow_ms: 0 });
  kit.machine.wall_offset_ms = 0;
  kit.isSynced = true;
  service.hangs_until_ms = world.now_ms;
  service.refuses = false;
  for (const proc of [broker.proc_now, kit.run?.proc, service.run?.proc])
    if (proc) proc.frozen_until_ms = world.now_ms;
  kit.start();
  service.start();
}
