/** A driver with a vehicle and endpoints on the loopback, and stations that connect to them. */
import { FakeDrone } from '../../../../fakes/fake-drone.ts';
import { FakeStation, type StationOptions } from '../../../../fakes/fake-station.ts';
import { checksum } from '../../../../../drivers/mavlink/wire/checksum.ts';
import { overhead_v2, stx_v2 } from '../../../../../drivers/mavlink/wire/frame.ts';
import type { SignFrame } from '../../../../../drivers/mavlink/wire/signing.ts';
import { eventually } from '../../../../support/eventually.ts';
import { drone_key, mavlinkLab, type MavlinkLab } from '../mavlink-lab.ts';

/** Records what it puts on its line. */
export class RecordedDrone extends FakeDrone {
  readonly sent: string[] = [];
  readonly arrived: string[] = [];

  protected override carry(bytes: Uint8Array): void {
    this.sent.push(Buffer.from(bytes).toString('hex'));
    super.carry(bytes);
  }

  protected override receive(bytes: Uint8Array): void {
    this.arrived.push(Buffer.from(bytes).toString('hex'));
    super.receive(bytes);
  }
}

export interface ForwardLab {
  readonly lab: MavlinkLab;
  readonly drone: RecordedDrone;
  readonly station: (about: StationOptions) => Promise<FakeStation>;
  /** The line of the only endpoint in `kit-connector status`, or of the named one. */
  readonly facts: (endpoint?: string) => string;
}

const encapsulated_data = { msgid: 131, crc_extra: 223, payload_bytes: 255 } as const;
const frames_a_datagram = 100;

/** A datagram full of frames of the greatest length, as a vehicle sends pictures: it fills the buffers of a connection soon. */
export function pictureDatagram(sysid: number): Uint8Array {
  const { msgid, crc_extra, payload_bytes } = encapsulated_data;
  const frames = Array.from({ length: frames_a_datagram }, (_, seq) => {
    const frame = Buffer.alloc(overhead_v2 + payload_bytes, 0x78);
    frame.set([stx_v2, payload_bytes, 0, 0, seq, sysid, 1, msgid, 0, 0]);
    const end = frame.length - 2;
    frame.writeUInt16LE(checksum(frame, 1, end, crc_extra), end);
    return frame;
  });
  return Buffer.concat(frames);
}

/** A frame of a message that no dialect of ours has. */
export function foreignFrame(sysid: number, seq = 7): Uint8Array {
  const header = [stx_v2, 4, 0, 0, seq, sysid, 1, 0x34, 0xa4, 0];
  return Buffer.from([...header, 1, 2, 3, 4, 0x55, 0xaa]);
}

interface VehicleSettings {
  /** Of the link that the vehicle sends to, if the options name it. */
  readonly vehicle_port?: number;
  readonly sign?: SignFrame;
}

export async function withEndpoints(
  endpoints: readonly object[],
  fn: (lab: ForwardLab) => Promise<void>,
  options: Readonly<Record<string, unknown>> = {},
  { vehicle_port, sign }: VehicleSettings = {},
): Promise<void> {
  const lab = await mavlinkLab({ endpoints, ...options });
  const stations: FakeStation[] = [];
  const drone = new RecordedDrone({ port: vehicle_port ?? lab.port, airborne: true });
  drone.sign = sign;
  try {
    await drone.start();
    // A passive driver requests no hardware id.
    await lab.until('online', options['passive'] === true ? 'mavlink:system-1' : drone_key);
    await fn({
      lab,
      drone,
      async station(about) {
        const station = new FakeStation(about);
        stations.push(station);
        await station.start();
        return station;
      },
      facts(endpoint = 'gcs') {
        const facts = lab.hub.drivers().find(({ name }) => name === 'drones')?.facts ?? {};
        return String(facts[`endpoint ${endpoint}`] ?? '');
      },
    });
  } finally {
    for (const station of stations) station.stop();
    await lab.stop();
    drone.stop();
  }
}

/** Resolves when the station has received each frame of the vehicle from now on. */
export async function receivesAll(drone: RecordedDrone, station: FakeStation, frames = 40): Promise<void> {
  const from = drone.sent.length;
  await eventually('the vehicle sent frames', () => drone.sent.length >= from + frames);
  const wanted = drone.sent.slice(from, from + frames);
  await eventually('the station received each of them once', () =>
    wanted.every((frame) => station.frames.includes(frame)),
  );
}
