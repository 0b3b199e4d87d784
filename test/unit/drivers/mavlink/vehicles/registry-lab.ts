/** A registry of vehicles in a real hub, with frames and times from the test. */
import { afterEach, beforeEach } from 'vitest';
import { VehicleRegistry } from '../../../../../drivers/mavlink/vehicles/vehicle-registry.ts';
import { vehicleCommands } from '../../../../../drivers/mavlink/mavlink.ts';
import { FrameView } from '../../../../../drivers/mavlink/wire/frame.ts';
import {
  blank,
  encode,
  type MessageName,
  type Messages,
} from '../../../../../drivers/mavlink/wire/messages.ts';
import { mavlinkOptions, type MavlinkOptions } from '../../../../../drivers/mavlink/options.ts';
import { Outgoing } from '../../../../../drivers/mavlink/links/outgoing.ts';
import { autopilotVersion } from '../../../../../drivers/mavlink/sim/telemetry.ts';
import { droneFeeds } from '../../../../../src/contract/drone-feeds.ts';
import { defineDriver, type DriverHost } from '../../../../../src/toolkit/driver/driver.ts';
import { aborted } from '../../../../../src/platform/time.ts';
import { asMavlink1 } from '../../../../fakes/mavlink1.ts';
import { hubLab } from '../../../../support/kit/hub-lab.ts';
import { framesOfDatagram } from '../frames.ts';
import { fakeLink, kit } from '../links/fake-link.ts';

export const link = fakeLink({ isNamed: (peer) => peer.startsWith('/dev/') });
const kind = { type: 2, autopilot: 3, base_mode: 81, system_status: 3, mavlink_version: 3 };
export const beat = { ...blank('HEARTBEAT'), ...kind };

/** Logs of vehicles are not transferred. */
export const no_logs = { progress: undefined, begin: () => undefined, armed: async () => undefined };

export let lab: ReturnType<typeof hubLab>;
export let registry: VehicleRegistry;
export const clock = { now_ms: 0 };

/** Opens a registry in a real hub, with these vehicles configured. */
export function open(vehicles: Readonly<Record<string, object>> = {}): void {
  lab = hubLab({ configured: ['drones'], rates: { default: 1_000 } });
  const run = async (options: MavlinkOptions, host: DriverHost<typeof droneFeeds>): Promise<void> => {
    const out = new Outgoing({ ...kit, passive: true });
    registry = new VehicleRegistry({
      host,
      options,
      out,
      commandsFor: vehicleCommands,
      logsFor: () => no_logs,
    });
    await aborted(host.signal);
  };
  const driver = defineDriver({ name: 'mavlink', feeds: droneFeeds, options: mavlinkOptions, run });
  const links = [{ kind: 'udp_listen', port: 14_550 }];
  void lab.run(driver, 'drones', { options: { links, vehicles, passive: true } });
}
/** Each test of the file that calls it has a registry of its own, once it calls `open`. */
export function useRegistry(): void {
  beforeEach(() => {
    clock.now_ms = performance.now();
  });
  afterEach(async () => lab.stop());
}

type Sender = number | { readonly sysid: number; readonly compid: number; readonly version?: 1 | 2 };

export function receive<K extends MessageName>(
  peer: string,
  from: Sender,
  name: K,
  fields: Messages[K],
): void {
  const { version = 2, ...sender } = typeof from === 'number' ? { sysid: from, compid: 1 } : from;
  const newer = encode(name, fields, { ...sender, seq: 0 });
  const bytes = (version === 1 ? asMavlink1(newer) : undefined) ?? newer;
  for (const frame of framesOfDatagram(bytes).frames) {
    if (frame instanceof FrameView) registry.frame(link, frame, peer, clock.now_ms);
  }
}
/** Receives one heartbeat and one identity. */
export function show(peer: string, sysid: number, uid: number): void {
  receive(peer, sysid, 'HEARTBEAT', beat);
  receive(peer, sysid, 'AUTOPILOT_VERSION', autopilotVersion(uidOf(uid)));
}
/** Receives the vehicle long enough for its announcement. */
export function live(peer: string, sysid: number, uid: number, seconds = 0.9): void {
  for (let ms = 0; ms < seconds * 1_000; ms += 300) {
    show(peer, sysid, uid);
    clock.now_ms += 300;
    registry.tick(clock.now_ms);
  }
}
export const uidOf = (uid: number): string => uid.toString(16).padStart(16, '0');
export const keyOf = (uid: number): string => `mavlink:${uidOf(uid)}`;
export const assets = () => lab.hub.assets().map(({ key }) => key);
export const contacts = (): number => registry.contacts;
