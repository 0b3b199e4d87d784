/** Stations behind endpoints, with real sockets and a simulated vehicle. */
import { createServer, type Socket, type AddressInfo } from 'node:net';
import { once } from 'node:events';
import { common, MavLinkProtocolV2 } from 'node-mavlink';
import { describe, expect, it } from 'vitest';
import { eventually } from '../../../../support/eventually.ts';
import { FakeStation } from '../../../../fakes/fake-station.ts';
import { drone_key } from '../mavlink-lab.ts';
import { foreignFrame, pictureDatagram, receivesAll, withEndpoints } from './forward-lab.ts';
import { freePort } from '../../../../support/ports.ts';
import { mayReceive, Stations } from '../../../../../drivers/mavlink/forward/endpoint.ts';

const return_home = 20;

describe.concurrent('An endpoint', () => {
  it.each(['udp', 'tcp'] as const)(
    'forwards every frame of the vehicle to a station over %s, and its command to the vehicle, byte by byte',
    async (kind) => {
      const port = await freePort();
      await withEndpoints(
        [{ kind: `${kind}_listen`, port, name: 'gcs' }],
        async ({ drone, station, facts }) => {
          const gcs = await station({ kind, port });
          await eventually('the station receives', () => gcs.frames.length > 0);
          await receivesAll(drone, gcs);
          expect(new Set(gcs.frames).size).toBeGreaterThan(gcs.frames.length - 3);
          const sent = Buffer.from(gcs.command(return_home)).toString('hex');
          await eventually('the command reaches the vehicle', () =>
            drone.commands.some(({ command }) => command === return_home),
          );
          expect(drone.arrived.filter((frame) => frame === sent)).toHaveLength(1);
          await eventually('the station receives the answer', () =>
            gcs.messages.some(
              ({ name, fields }) =>
                name === 'COMMAND_ACK' && fields.command === return_home && fields.target_system === 255,
            ),
          );
          await eventually('the status names the station and the rates', () => {
            const text = facts();
            return text.includes(gcs.address) && /to them [1-9]\d* \([1-9][\d.]*\/s\)/u.test(text);
          });
          expect(facts()).not.toContain('dropped');
        },
      );
    },
  );

  it.each(['udp', 'tcp'] as const)(
    'forwards a frame of an unknown dialect over %s both ways, and counts one that no vehicle sends',
    async (kind) => {
      const port = await freePort();
      const endpoint = { kind: `${kind}_listen`, port, name: 'gcs' };
      await withEndpoints([endpoint], async ({ drone, station, facts }) => {
        const gcs = await station({ kind, port });
        await eventually('the station receives', () => gcs.frames.length > 0);
        const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
        drone.sendRaw(foreignFrame(1));
        drone.sendRaw(foreignFrame(9));
        gcs.sendRaw(foreignFrame(255));
        await eventually(
          'both arrived',
          () => gcs.frames.includes(hex(foreignFrame(1))) && drone.arrived.includes(hex(foreignFrame(255))),
        );
        await eventually('the other one is counted', () => facts().includes('dropped: unknown 1'));
        expect(gcs.frames).not.toContain(hex(foreignFrame(9)));
      });
    },
  );

  it('sends no heartbeat of the kit to stations, and none of them twice to the vehicle', async () => {
    const port = await freePort();
    await withEndpoints([{ kind: 'udp_listen', port, name: 'gcs' }], async ({ drone, station }) => {
      const gcs = await station({ kind: 'udp', port });
      gcs.beat();
      await eventually(
        'both beat, and the station receives',
        () => gcs.frames.length > 0 && drone.beats.filter(({ sysid }) => sysid === 245).length >= 3,
      );
      expect(drone.beats.filter(({ sysid }) => sysid === 255)).toHaveLength(2);
      const senders = gcs.frames.map((frame) => Number.parseInt(frame.slice(10, 12), 16));
      expect(new Set(senders)).toEqual(new Set([1]));
    });
  });

  it('forwards frames to stations and blocks theirs, with a count, when it is read-only', async () => {
    const port = await freePort();
    const endpoint = { kind: 'udp_listen', port, name: 'gcs', read_only: true };
    await withEndpoints([endpoint], async ({ drone, station, facts }) => {
      const gcs = await station({ kind: 'udp', port });
      await eventually('the station receives', () => gcs.frames.length > 0);
      gcs.command(return_home);
      await eventually('the drop is counted', () => facts().includes('read_only 2'));
      expect(drone.commands).toEqual([]);
      expect(drone.beats.filter(({ sysid }) => sysid === 255)).toEqual([]);
    });
  });

  it('of a passive driver is read-only', async () => {
    const port = await freePort();
    await withEndpoints(
      [{ kind: 'udp_listen', port, name: 'gcs' }],
      async ({ drone, station, facts }) => {
        const gcs = await station({ kind: 'udp', port });
        gcs.command(return_home);
        await eventually('the drop is counted', () => facts().includes('read_only 2'));
        expect(drone.arrived).toEqual([]);
      },
      { passive: true },
    );
  });

  it('forwards only the configured vehicles, in both directions', async () => {
    const port = await freePort();
    const vehicles = ['mavlink:00000000c0ffee02'];
    await withEndpoints([{ kind: 'udp_listen', port, name: 'gcs', vehicles }], async (scene) => {
      const { lab, drone, station, facts } = scene;
      const gcs = await station({ kind: 'udp', port });
      const other = await lab.fly({ sysid: 2, uid: '00000000c0ffee02', airborne: true });
      await eventually('the station receives', () => gcs.frames.length > 20);
      expect(new Set(gcs.frames.map((frame) => frame.slice(10, 12)))).toEqual(new Set(['02']));
      gcs.command(return_home, 1);
      gcs.command(return_home, 2);
      gcs.command(return_home, 9);
      // The first heartbeat came before the vehicle was known.
      await eventually('the commands were decided', () => /filtered 2, no_vehicle 1/u.test(facts()));
      expect(drone.commands).toEqual([]);
      expect(other.commands.map(({ command }) => command)).toEqual([return_home]);
    });
  });

  it('with configured vehicles forwards one of these also while a stranger elsewhere has its system id', async () => {
    const port = await freePort();
    const endpoint = { kind: 'udp_listen', port, name: 'gcs', vehicles: [drone_key] };
    await withEndpoints([endpoint], async ({ lab, drone, station }) => {
      const gcs = await station({ kind: 'udp', port });
      const stranger = await lab.fly({ uid: '00000000c0ffee02', airborne: true, from: '127.0.0.2' });
      await lab.sees('sys_status', ({ alarms }) => Array.isArray(alarms) && alarms.length > 0);
      await receivesAll(drone, gcs);
      gcs.command(return_home, 1);
      await eventually('the command arrives', () => drone.commands.length > 0);
      expect(stranger.commands).toEqual([]);
    });
  });

  it.for([
    { at: 'one address', from: '127.0.0.1', vehicles: {}, has_both: true },
    { at: 'addresses that nothing names', from: '127.0.0.2', vehicles: {}, has_both: true },
    {
      at: 'another address than its hosts',
      from: '127.0.0.2',
      vehicles: { [drone_key]: { hosts: ['127.0.0.1'] } },
      has_both: false,
    },
  ])(
    'keeps the pilot in control while another vehicle has the same system id: $at',
    async ({ from, vehicles, has_both }) => {
      const port = await freePort();
      const endpoint = { kind: 'udp_listen', port, name: 'gcs' };
      await withEndpoints(
        [endpoint],
        async ({ lab, drone, station }) => {
          const gcs = await station({ kind: 'udp', port });
          const other = await lab.fly({ uid: '00000000c0ffee02', airborne: true, from });
          await lab.sees('sys_status', ({ alarms }) => Array.isArray(alarms) && alarms.length > 0);
          gcs.command(return_home, 1);
          await eventually(
            'the command arrives',
            () => drone.commands.length > 0 && (!has_both || other.commands.length > 0),
          );
          expect(other.commands).toHaveLength(has_both ? 1 : 0);
        },
        { vehicles },
      );
    },
  );

  it('blocks SETUP_SIGNING, which contains the key, and forwards what the station sends after it', async () => {
    const port = await freePort();
    await withEndpoints([{ kind: 'udp_listen', port, name: 'gcs' }], async ({ drone, station, facts }) => {
      const pilot = await station({ kind: 'udp', port });
      const setup = new common.SetupSigning();
      Object.assign(setup, { targetSystem: 1, targetComponent: 1, secretKey: Array(32).fill(7) });
      const frame = new MavLinkProtocolV2(255, 190).serialize(setup, 1);
      pilot.sendRaw(frame);
      await eventually('the drop is counted', () => facts().includes('blocked 1'));
      pilot.command(return_home);
      await eventually('the command arrives', () => drone.commands.length > 0);
      expect(drone.arrived).not.toContain(frame.toString('hex'));
    });
  });

  it('blocks frames that have the ids of the kit, or pretend to be the vehicle', async () => {
    const port = await freePort();
    await withEndpoints([{ kind: 'udp_listen', port, name: 'gcs' }], async ({ drone, station, facts }) => {
      const kit = await station({ kind: 'udp', port, sysid: 245, compid: 191 });
      const vehicle = await station({ kind: 'udp', port, sysid: 1, compid: 1 });
      kit.command(return_home);
      vehicle.command(return_home);
      await eventually('the drops are counted', () => /looped 2, own_ids 2/u.test(facts()));
      expect(drone.commands).toEqual([]);
      await eventually('the vehicle stays online and alone', () => drone.beats.length > 2);
      expect(drone.beats.filter(({ sysid }) => sysid !== 245)).toEqual([]);
    });
  });

  it('forwards no more to the vehicles than its budget', async () => {
    const port = await freePort();
    const endpoint = { kind: 'udp_listen', port, name: 'gcs', to_vehicles_bytes_per_s: 200 };
    await withEndpoints([endpoint], async ({ drone, station, facts }) => {
      const gcs = await station({ kind: 'udp', port });
      for (let count = 0; count < 50; count += 1) gcs.command(return_home);
      await eventually('the drops are counted', () => /rate [1-9]\d/u.test(facts()));
      expect(drone.commands.length).toBeGreaterThan(0);
      expect(drone.commands.length).toBeLessThan(10);
    });
  });

  it('accepts no more stations than configured, and keeps those that it has', async () => {
    const port = await freePort();
    const tcp_port = await freePort();
    const endpoints = [
      { kind: 'udp_listen', port, name: 'gcs', peers_max: 1 },
      { kind: 'tcp_listen', port: tcp_port, name: 'tcp', clients_max: 1 },
    ];
    await withEndpoints(endpoints, async ({ drone, station, facts }) => {
      const first = await station({ kind: 'udp', port });
      await eventually('the first receives', () => first.frames.length > 0);
      const second = await station({ kind: 'udp', port });
      second.command(return_home);
      await eventually('the second is refused', () => facts().includes('refused_peer 2'));
      const first_tcp = await station({ kind: 'tcp', port: tcp_port });
      await eventually('the first connection receives', () => first_tcp.frames.length > 0);
      const second_tcp = await station({ kind: 'tcp', port: tcp_port });
      await eventually('the second connection is closed', () => second_tcp.isClosed);
      await eventually('it is counted', () => facts('tcp').includes('1 connections refused'));
      expect(second.frames).toEqual([]);
      expect(drone.commands).toEqual([]);
      await receivesAll(drone, first, 10);
      await receivesAll(drone, first_tcp, 10);
    });
  });

  it('drops frames of a station that does not read, with a count, and serves the others', async () => {
    const port = await freePort();
    await withEndpoints([{ kind: 'tcp_listen', port, name: 'gcs' }], async ({ drone, station, facts }) => {
      const slow = await station({ kind: 'tcp', port });
      const good = await station({ kind: 'tcp', port });
      await eventually('both receive', () => slow.frames.length > 0 && good.frames.length > 0);
      slow.pause();
      const picture = pictureDatagram(drone.options.sysid);
      const sending = setInterval(() => drone.sendRaw(picture), 5);
      try {
        await eventually('the drops are counted', () => /slow [1-9]/u.test(facts()));
      } finally {
        clearInterval(sending);
      }
      // On a busy machine frames of the flood still wait, and some were lost before they came here.
      const marks: string[] = [];
      await eventually('a frame sent now is received', () => {
        drone.sendText('calm');
        marks.push(drone.sent.at(-1) ?? '');
        return marks.some((mark) => good.frames.includes(mark));
      });
      await receivesAll(drone, good, 10);
    });
  }, 90_000);

  it.each(['udp', 'tcp'] as const)('reaches a station at a fixed address over %s', async (kind) => {
    const arrived: Buffer[] = [];
    const sockets: Socket[] = [];
    const server = createServer((socket) => {
      sockets.push(socket);
      socket.on('data', (chunk: Buffer) => arrived.push(chunk));
      socket.on('error', () => undefined);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const receiver = new FakeStation({ kind: 'udp', port: 9 });
    await receiver.start();
    const udp_port = Number(receiver.address.split(':')[1]);
    const port = kind === 'udp' ? udp_port : (server.address() as AddressInfo).port;
    const endpoint = { kind: `${kind}_client`, host: '127.0.0.1', port, name: 'gcs' };
    await withEndpoints([endpoint], async ({ facts }) => {
      await eventually('it receives', () =>
        kind === 'udp' ? receiver.frames.length > 10 : Buffer.concat(arrived).length > 500,
      );
      await eventually('the status names it', () => facts().includes(`127.0.0.1:${port}`));
    });
    receiver.stop();
    for (const socket of sockets) socket.destroy();
    server.close();
  });
});

it('The loss of the pilot behind an endpoint starts the failsafe, which the heartbeats of the kit do not hide', async () => {
  const port = await freePort();
  await withEndpoints([{ kind: 'udp_listen', port, name: 'gcs' }], async ({ lab, drone, station }) => {
    drone.gcs_failsafe_ms = 1_500;
    const pilot = await station({ kind: 'udp', port });
    await lab.sees('sys_status', ({ flight_mode }) => flight_mode === 'AUTO');
    pilot.beat();
    await eventually('the vehicle receives the pilot', () => drone.beats.some(({ sysid }) => sysid === 255));
    // Then the pilot's station is lost, and the kit goes on.
    await eventually('the vehicle returns home', () => drone.flight.mode === 'RTL');
    await lab.sees('sys_status', ({ flight_mode }) => flight_mode === 'RTL');
    await eventually('the text is logged', () =>
      lab.log.lines.some(({ facts }) => JSON.stringify(facts).includes('GCS Failsafe')),
    );
    const beats = drone.beats.length;
    await eventually('the kit goes on', () => drone.beats.length > beats);
    expect(new Set(drone.beats.slice(beats).map(({ sysid }) => sysid))).toEqual(new Set([245]));
    expect(drone.commands).toEqual([]);
    expect(drone.flight.mode).toBe('RTL');
  });
});

const frame_bytes = 21;

function stationAt(address: string) {
  const stations = new Stations(4, { joined: () => undefined, left: () => undefined });
  const from = { address, port: 14_550, family: 'IPv4', size: frame_bytes } as const;
  const hears = (): void => stations.received(from, frame_bytes, 0);
  const receives = (frames: number): number =>
    Array.from({ length: frames }, () =>
      stations.recent(0).filter((each) => mayReceive(each, frame_bytes)),
    ).flat().length;
  hears();
  return { hears, receives };
}

describe('A station of a UDP endpoint', () => {
  it.each(['203.0.113.5', '::ffff:203.0.113.5'])(
    'in the internet, at %s, receives three times the bytes that came from it',
    (address) => {
      const { hears, receives } = stationAt(address);
      expect(receives(100)).toBe(3);
      hears();
      expect(receives(100)).toBe(3);
    },
  );

  it.each(['192.168.1.20', '100.101.102.103', '127.0.0.1'])('at %s receives all', (address) => {
    expect(stationAt(address).receives(100)).toBe(100);
  });
});
