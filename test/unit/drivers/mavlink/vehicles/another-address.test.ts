/** Without signing, anyone on a network can send as a vehicle: what comes from another address neither receives nor completes its commands. */
import { expect, it } from 'vitest';
import { texts } from '../../../../../drivers/mavlink/commands/texts.ts';
import { eventually } from '../../../../support/eventually.ts';
import { drone_key, withDrone } from '../mavlink-lab.ts';

it('A command is neither sent to a stranger with the ids of a silent vehicle, nor completed by what it shows', async () => {
  await withDrone(
    { airborne: true, from: '127.0.0.1' },
    async (lab, drone) => {
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
    },
    { offline_after_s: 600 },
  );
});
