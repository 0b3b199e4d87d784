/** Looks for vehicles: listens on the usual UDP ports, and lists the serial ports on which a radio or an autopilot may be. */
import { createSocket } from 'node:dgram';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Suggestion } from '../../src/driver/suggest.ts';
import { aborted } from '../../src/platform/time.ts';
import type { FrameView } from './frame.ts';
import { parseDatagram } from './framer.ts';

/** Where routers and autopilots send: ground stations, and companions of PX4. */
const usual_ports = [14_550, 14_540, 14_551];
const heartbeat_id = 0;
/** MAV_TYPE_GCS: a ground station is no vehicle. */
const ground_station_type = 6;
const type_at = 4;
const by_id = '/dev/serial/by-id';

const silentTally = { skipped: () => undefined, badChecksum: () => undefined, unknownId: () => undefined };

export async function suggest(
  signal: AbortSignal,
  { ports = usual_ports, serial_dir = by_id } = {},
): Promise<readonly Suggestion[]> {
  const heard = await Promise.all(ports.map(async (port) => listen(port, signal)));
  return [...heard.filter((found) => found !== undefined), ...(await serialPorts(serial_dir))];
}

/** Undefined when nobody is heard, or when the port is taken: then somebody else listens there already. */
async function listen(port: number, signal: AbortSignal): Promise<Suggestion | undefined> {
  const vehicles = new Set<number>();
  const socket = createSocket('udp4');
  const closed = Promise.withResolvers<undefined>();
  const take = (frame: FrameView): void => {
    if (frame.msgid === heartbeat_id && frame.payload[type_at] !== ground_station_type)
      vehicles.add(frame.sysid);
  };
  socket.on('message', (datagram) => parseDatagram(datagram, { tally: silentTally, frame: take }));
  socket.on('error', () => closed.resolve(undefined));
  socket.bind(port);
  await Promise.race([closed.promise, aborted(signal)]);
  socket.close();
  if (vehicles.size === 0) return undefined;
  return {
    what: `MAVLink on UDP port ${port}: system ${[...vehicles].join(', ')}`,
    options: { links: [{ kind: 'udp_listen', port }] },
    complete: true,
  };
}

/** Opening a port can reset what is behind it, so that nobody is asked. */
async function serialPorts(dir: string): Promise<readonly Suggestion[]> {
  const names = await readdir(dir).catch(() => []);
  return names.map((name) => ({
    what: `serial port ${name}: a telemetry radio or an autopilot?`,
    options: { links: [{ kind: 'serial', path: join(dir, name) }] },
    complete: false,
  }));
}
