/** Wiring mistakes: endpoints joined with each other, with a link of the driver, or answered by a router. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { checksum } from '../../../../../drivers/mavlink/wire/checksum.ts';
import { eventually } from '../../../../support/eventually.ts';
import { withEndpoints } from './forward-lab.ts';
import { freePort } from '../../../../support/ports.ts';

const return_home = 20;

describe.concurrent('Forwarding', () => {
  it('does not storm when a program joins two endpoints, and still forwards', async () => {
    const port = await freePort();
    const joined = await freePort();
    const third = await freePort();
    const endpoints = [
      { kind: 'udp_listen', port, name: 'a' },
      { kind: 'tcp_listen', port: joined, name: 'b' },
      { kind: 'udp_listen', port: third, name: 'gcs' },
    ];
    await withEndpoints(endpoints, async ({ drone, station, facts, lab }) => {
      const udp = createSocket('udp4');
      const tcp = connect({ host: '127.0.0.1', port: joined });
      await once(tcp, 'connect');
      let copied = 0;
      udp.on('message', (bytes) => {
        copied += 1;
        tcp.write(bytes);
      });
      tcp.on('data', (bytes) => {
        copied += 1;
        udp.send(bytes, port, '127.0.0.1');
      });
      try {
        const gcs = await station({ kind: 'udp', port: third });
        await eventually('the endpoints see returned frames', () => /looped [1-9]/u.test(facts('a')));
        await eventually('both do', () => /looped [1-9]/u.test(facts('b')));
        gcs.command(return_home);
        await eventually('the command arrives', () => drone.commands.length > 0);
        expect(drone.commands).toHaveLength(1);
        // Each frame of the vehicle is copied once in each direction at most.
        expect(copied).toBeLessThanOrEqual(2 * drone.sent.length);
        expect(lab.hub.assets()).toHaveLength(1);
        expect(drone.beats.filter(({ sysid }) => sysid === 255)).toHaveLength(1);
      } finally {
        udp.close();
        tcp.destroy();
      }
    });
  });

  it('ignores an endpoint that sends to a link of the same driver', async () => {
    const field = await freePort();
    const back = await freePort();
    const links = [
      { kind: 'udp_listen', host: '127.0.0.1', port: field, name: 'field' },
      { kind: 'udp_listen', host: '127.0.0.1', port: back, name: 'back' },
    ];
    const endpoint = { kind: 'udp_client', host: '127.0.0.1', port: back, name: 'gcs' };
    await withEndpoints(
      [endpoint],
      async ({ lab, drone, facts }) => {
        await eventually('frames are forwarded', () => /to them [1-9]\d+/u.test(facts()));
        const sent = drone.sent.length;
        await eventually('the vehicle sends more', () => drone.sent.length > sent + 40);
        expect(lab.hub.assets()).toMatchObject([{ status: 'online' }]);
        expect(lab.hub.drivers().find(({ name }) => name === 'drones')?.facts['conflicts']).toBe(0);
        expect(Number(/to them (\d+)/u.exec(facts())?.[1])).toBeLessThanOrEqual(drone.sent.length);
      },
      { links },
      { vehicle_port: field },
    );
  });

  it('forwards nothing back that a router of the vehicle returns', async () => {
    const port = await freePort();
    await withEndpoints([{ kind: 'udp_listen', port, name: 'gcs' }], async ({ drone, station }) => {
      const gcs = await station({ kind: 'udp', port });
      const sent = gcs.command(return_home);
      await eventually('the command arrives', () => drone.commands.length > 0);
      const before = gcs.frames.length;
      drone.sendRaw(sent);
      await eventually('the station receives more', () => gcs.frames.length > before + 10);
      expect(gcs.frames).not.toContain(Buffer.from(sent).toString('hex'));
    });
  });

  it('lets no station hide what a vehicle sends from the others by sending its next frames before it', async () => {
    const port = await freePort();
    const other = await freePort();
    const endpoints = [
      { kind: 'udp_listen', port, name: 'hostile', read_only: true },
      { kind: 'udp_listen', port: other, name: 'gcs' },
    ];
    await withEndpoints(endpoints, async ({ drone, station, facts }) => {
      const gcs = await station({ kind: 'udp', port: other });
      const hostile = await station({ kind: 'udp', port });
      await eventually('a heartbeat of the vehicle is known', () => beatOf(hostile.frames) !== undefined);
      const beat = Buffer.from(beatOf(hostile.frames) ?? '', 'hex');
      for (let seq = 0; seq < 256; seq += 1) hostile.sendRaw(withSeq(beat, seq));
      await eventually(
        'its frames were seen',
        () => (facts('hostile').match(/read_only \d+|looped \d+/gu) ?? []).length > 0,
      );
      const from = drone.sent.length;
      await eventually(
        'the vehicle sends the same again',
        () => beatOf(drone.sent.slice(from)) !== undefined,
      );
      const wanted = beatOf(drone.sent.slice(from)) ?? '';
      await eventually('the other station receives it', () => gcs.frames.includes(wanted), 10_000);
    });
  });
});

const heartbeat = { msgid: '000000', crc_extra: 50 } as const;

/** The first heartbeat among frames of MAVLink 2. */
function beatOf(frames: readonly string[]): string | undefined {
  return frames.find((frame) => frame.startsWith('fd') && frame.slice(14, 20) === heartbeat.msgid);
}

function withSeq(frame: Uint8Array, seq: number): Uint8Array {
  const other = Buffer.from(frame);
  other[4] = seq;
  const end = other.length - 2;
  other.writeUInt16LE(checksum(other, 1, end, heartbeat.crc_extra), end);
  return other;
}
