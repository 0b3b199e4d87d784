/** Finds vehicles: listens on the usual UDP ports, and lists the serial ports of possible radios and autopilots. */
import { createSocket } from 'node:dgram';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Suggestion } from '../../src/toolkit/driver/suggest.ts';
import { aborted } from '../../src/platform/time.ts';
import type { FrameView } from './wire/frame.ts';
import { parseDatagram } from './wire/framer.ts';

/** Ports that routers and autopilots send to: those of ground stations, and of PX4 companion computers. */
const usual_ports = [14_550, 14_540, 14_551];
const heartbeat_id = 0;
/** MAV_TYPE_GCS: a ground station is not a vehicle. */
const ground_station_type = 6;
const type_at = 4;
const by_id = '/dev/serial/by-id';

export async function suggest(
  signal: AbortSignal,
  { ports = usual_ports, serial_dir = by_id } = {},
): Promise<readonly Suggestion[]> {
  const found = await Promise.all(ports.map(async (port) => listen(port, signal)));
  return [...found.filter((suggestion) => suggestion !== undefined), ...(await serialPorts(serial_dir))];
}

/** Returns undefined when no vehicle sends, or when another program already listens on the port. */
async function listen(port: number, signal: AbortSignal): Promise<Suggestion | undefined> {
  const vehicles = new Set<number>();
  const socket = createSocket('udp4');
  const closed = Promise.withResolvers<undefined>();
  const receive = (frame: FrameView): void => {
    if (frame.msgid === heartbeat_id && frame.payload[type_at] !== ground_station_type)
      vehicles.add(frame.sysid);
  };
  socket.on('message', (datagram) => parseDatagram(datagram, { frame: receive }));
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

/** Lists ports without opening them: opening a port can reset the device behind it. */
async function serialPorts(dir: string): Promise<readonly Suggestion[]> {
  const names = await readdir(dir).catch(() => []);
  return names.map((name) => ({
    what: `serial port ${name}: a telemetry radio or an autopilot?`,
    options: { links: [{ kind: 'serial', path: join(dir, name) }] },
    complete: false,
  }));
}
