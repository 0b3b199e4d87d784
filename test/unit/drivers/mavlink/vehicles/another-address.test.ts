/** Without signing, anyone on a network can send as a vehicle: what comes from another address neither receives nor completes its commands. */
import { expect, it } from 'vitest';
import { texts } from '../../../../../drivers/mavlink/commands/texts.ts';
import { eventually } from '../../../../support/eventually.ts';
import { texts as vehicle_texts } from '../../../../../drivers/mavlink/vehicles/texts.ts';
import { FakeDrone } from '../../../../fakes/fake-drone.ts';
import { drone_key, withDrone } from '../mavlink-lab.ts';

it('A command is neither sent to a stranger with the ids of a silent vehicle, nor completed by what it shows', async () => {
  await withDrone({ airborne: true, from: '127.0.0.1' }, { offline_after_s: 600 }, async (lab, drone) => {
    const stranger = await lab.fly({ airborne: true, from: '127.0.0.2' });
    const identity = 148;
    await eventually('it was asked who it is', () => stranger.requests.includes(identity));
    drone.silent = true;
    const order = async (remaining_ms: number) =>
      lab.command('set_mode', { mode: 'LOITER' }, { remaining_ms });
    await expect(order(2_500)).rejects.toThrow(texts.unknown_outcome(''));
    // Once the vehicle counts as silent.
    await eventually('the next one is not sent', async () =>
      order(1_500).then(
        () => false,
        (error: unknown) => String(error).includes(texts.not_sent('')),
      ),
    );
    expect(stranger.commands).toEqual([]);
    expect(lab.hub.assets().map(({ key }) => key)).toEqual([drone_key]);
  });
});

it('A stranger with the system id of a vehicle and another identity at another address does not stop its commands', async () => {
  await withDrone({ airborne: true, from: '127.0.0.1' }, async (lab, drone) => {
    const stranger = await lab.fly({ airborne: true, from: '127.0.0.2', uid: '00000000dead0001' });
    await lab.until('online', 'mavlink:00000000dead0001');
    await lab.sees('sys_status', ({ alarms }) =>
      JSON.stringify(alarms ?? '').includes(vehicle_texts.id_elsewhere(1)),
    );
    expect(await lab.command('return_home')).toMatchObject({ flight_mode: 'RTL' });
    expect(drone.commands).not.toEqual([]);
    expect(stranger.commands).toEqual([]);
    expect(lab.log.at('error')).toEqual([]);
    expect(lab.log.at('warn')).toContain(vehicle_texts.id_elsewhere(1));
  });
});

it('Strangers that share a system id and an address do not stop the commands of a vehicle with that id', async () => {
  await withDrone({ airborne: true, from: '127.0.0.1' }, async (lab, drone) => {
    const stranger = await lab.fly({ airborne: true, from: '127.0.0.2', uid: '00000000dead0001' });
    const second = new FakeDrone({ port: lab.port, uid: '00000000dead0002', uptime_ms: 100_000 });
    second.shareAddressOf(stranger);
    await second.start();
    await eventually('the ids at that address are seen to be shared', () =>
      lab.log.at('error').includes(vehicle_texts.conflict),
    );
    expect(await lab.command('return_home')).toMatchObject({ flight_mode: 'RTL' });
    expect(drone.commands).not.toEqual([]);
    second.stop();
  });
});
