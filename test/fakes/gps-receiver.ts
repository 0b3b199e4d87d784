/** A GPS receiver that speaks NMEA 0183 over TCP with the current time, for gpsd to read, and misbehaves on command. */
import { createServer, type Socket } from 'node:net';
import { every } from '../../src/platform/time.ts';

export interface GpsReceiver {
  readonly port: number;
  /** `frozen`: as firmware that hangs, the sentences of the last moment again and again (MotusDev/Motus-TO-DO#482). */
  manner: 'fix3d' | 'fix2d' | 'nofix' | 'mute' | 'frozen';
  /** Stamps what it says with a time so far in the past. */
  delay_ms: number;
  place: { latitude: number; longitude: number; alt_msl_m: number; geoid_m: number };
  stop(): Promise<void>;
}

const epoch_ms = 200;

export async function startGpsReceiver(): Promise<GpsReceiver> {
  const sockets = new Set<Socket>();
  const stopping = new AbortController();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  const receiver: GpsReceiver = {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    manner: 'fix3d',
    delay_ms: 0,
    place: { latitude: 59.3293, longitude: 18.0686, alt_msl_m: 45, geoid_m: 23.4 },
    async stop() {
      stopping.abort();
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
  let text = '';
  every(epoch_ms, stopping.signal, () => {
    if (receiver.manner === 'mute') return;
    if (receiver.manner !== 'frozen') text = epochText(receiver);
    for (const socket of sockets) socket.write(text);
  });
  return receiver;
}

/** GGA, GSA and RMC of one moment. */
function epochText({ manner, delay_ms, place }: GpsReceiver): string {
  const iso = new Date(Date.now() - delay_ms).toISOString();
  const time = `${iso.slice(11, 19).replaceAll(':', '')}.${iso.slice(20, 22)}`;
  const date = `${iso.slice(8, 10)}${iso.slice(5, 7)}${iso.slice(2, 4)}`;
  if (manner === 'nofix') {
    return [
      `GPGGA,${time},,,,,0,00,99.99,,M,,M,,`,
      'GPGSA,A,1,,,,,,,,,,,,,99.99,99.99,99.99',
      `GPRMC,${time},V,,,,,,,${date},,,N`,
    ]
      .map((body) => sentence(body))
      .join('');
  }
  const north = `${angle(place.latitude, 2)},${place.latitude < 0 ? 'S' : 'N'}`;
  const east = `${angle(place.longitude, 3)},${place.longitude < 0 ? 'W' : 'E'}`;
  const is2d = manner === 'fix2d';
  const height = is2d ? ',M,,M' : `${place.alt_msl_m},M,${place.geoid_m},M`;
  return [
    `GPGGA,${time},${north},${east},1,09,0.9,${height},,`,
    `GPGSA,A,${is2d ? 2 : 3},02,04,05,09,12,17,19,23,25,,,,1.8,0.9,1.5`,
    `GPRMC,${time},A,${north},${east},0.10,12.0,${date},,,A`,
  ]
    .map((body) => sentence(body))
    .join('');
}

function sentence(body: string): string {
  let sum = 0;
  for (const letter of body) sum ^= letter.charCodeAt(0);
  return `$${body}*${sum.toString(16).toUpperCase().padStart(2, '0')}\r\n`;
}

/** Degrees and minutes, as NMEA writes them. */
function angle(value: number, width: number): string {
  const degrees = Math.trunc(Math.abs(value));
  const minutes = (Math.abs(value) - degrees) * 60;
  return `${String(degrees).padStart(width, '0')}${minutes.toFixed(6).padStart(9, '0')}`;
}
