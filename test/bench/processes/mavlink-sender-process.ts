/** Drones that talk to one port, twenty or as many as the second argument says: 70 messages a second each, from a process of their own. */
import { createSocket } from 'node:dgram';
import { MavLinkProtocolV2 } from 'node-mavlink';
import { dealt, filled, lehmer } from '../support/mavlink-stream.ts';

const drones = Number(process.argv[3] ?? 20);
const messages_per_s = 70;
const tick_ms = 50;

/** What must make sense for the driver to publish it. */
const sensible: Readonly<Record<string, object>> = {
  HEARTBEAT: { type: 2, autopilot: 3, baseMode: 81, customMode: 5, systemStatus: 3, mavlinkVersion: 3 },
  GPS_RAW_INT: { fixType: 3, lat: 473_977_420, lon: 85_455_940, alt: 488_000 },
  GLOBAL_POSITION_INT: { lat: 473_977_420, lon: 85_455_940, alt: 488_000 },
  BATTERY_STATUS: { id: 0 },
  EKF_STATUS_REPORT: { flags: 831, velocityVariance: 0.1, posHorizVariance: 0.1, posVertVariance: 0.1 },
};

const port = Number(process.argv[2]);
const random = lehmer();
const started_ms = Date.now();
const all = Array.from({ length: drones }, (_, index) => {
  const socket = createSocket('udp4');
  return { socket, protocol: new MavLinkProtocolV2(index + 1, 1), dealt: index * 100, seq: 0 };
});
let due = 0;
setInterval(() => {
  due += (messages_per_s * tick_ms) / 1_000;
  for (; due >= 1; due--) {
    for (const drone of all) {
      // A heartbeat each second, the other messages as they are dealt.
      const name = drone.seq % messages_per_s === 0 ? 'HEARTBEAT' : dealt(drone.dealt++);
      const message = Object.assign(filled(name, random), sensible[name]);
      if ('timeBootMs' in message) Object.assign(message, { timeBootMs: Date.now() - started_ms });
      drone.socket.send(drone.protocol.serialize(message, drone.seq++ & 0xff), port, '127.0.0.1');
    }
  }
}, tick_ms);
process.once('disconnect', () => process.exit());
