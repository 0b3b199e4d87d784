/** Another program beside the autopilot sends heartbeats with the autopilot's ids: they change nothing but raise an alarm. */
import { describe, expect, it } from 'vitest';
import { texts } from '../../../../../drivers/mavlink/vehicles/texts.ts';
import { blank, encode, type Messages } from '../../../../../drivers/mavlink/wire/messages.ts';
import { eventually } from '../../../../support/eventually.ts';
import { every, sleep } from '../../../../../src/platform/time.ts';
import type { FakeDrone } from '../../../../fakes/fake-drone.ts';
import { drone_key, withLab } from '../mavlink-lab.ts';

const rows: readonly { readonly what: string; readonly beat: Partial<Messages['HEARTBEAT']> }[] = [
  { what: 'a companion computer (mavros)', beat: { type: 18, autopilot: 8 } },
  { what: 'a ground station', beat: { type: 6, autopilot: 8 } },
  {
    what: 'a camera that names a generic autopilot',
    beat: { type: 30, autopilot: 0 },
  },
  {
    what: 'a program without a type (mavp2p)',
    beat: { type: 0, autopilot: 0 },
  },
  // ArduPilot#7088: modes by turns, one of them without the bit that ArduPilot always sets.
  {
    what: 'a program that names the same autopilot',
    beat: { type: 2, autopilot: 3, base_mode: 192, custom_mode: 9 },
  },
  {
    what: 'a program that names another autopilot',
    beat: { type: 2, autopilot: 12, base_mode: 1 },
  },
];

function disturb(drone: FakeDrone, beat: Partial<Messages['HEARTBEAT']>): () => void {
  const fields = { ...blank('HEARTBEAT'), ...beat, system_status: 4, mavlink_version: 3 };
  return () => drone.sendRaw(encode('HEARTBEAT', fields, { sysid: 1, compid: 1, seq: 0 }));
}

describe.concurrent('Heartbeats under the ids of an autopilot', () => {
  it.each(
    rows
      .flatMap((row) => ['before', 'after'].map((first) => ({ ...row, first })))
      .filter(
        // Who names an autopilot and is there first is taken for it.
        ({ beat, first }) => first === 'after' || beat.autopilot !== 12,
      ),
  )('of $what, there $first it, do not count and are an alarm', async ({ beat, first }) => {
    await withLab(async (lab) => {
      const drone = await lab.fly({ airborne: true });
      const disturbing = new AbortController();
      const send = disturb(drone, beat);
      if (first === 'before') send();
      else await lab.until('online');
      every(300, disturbing.signal, send);
      const alarm = texts.alien_heartbeats(1, 1);
      await lab.sees('sys_status', ({ alarms }) => JSON.stringify(alarms ?? '').includes(alarm));
      await eventually('it is logged', () => lab.log.at('warn').includes(alarm));
      lab.outbox.clear();
      for (let n = 0; n < 3; n += 1) {
        expect(await lab.sees('sys_status')).toMatchObject({ armed: true, flight_mode: 'AUTO' });
        lab.outbox.clear();
      }
      expect(await lab.command('return_home')).toMatchObject({ flight_mode: 'RTL' });
      expect(lab.hub.assets().map(({ key }) => key)).toEqual([drone_key]);
      expect(lab.log.at('warn').filter((line) => line === alarm)).toHaveLength(1);
      // They do not keep it online.
      drone.silent = true;
      await lab.until('offline');
      // Nor do they bring it back.
      await sleep(1_500, disturbing.signal);
      expect(lab.hub.assets().find(({ key }) => key === drone_key)).toMatchObject({ status: 'offline' });
      expect(lab.log.at('info')).not.toContain('vehicle disarmed');
      drone.silent = false;
      await lab.until('online');
      lab.outbox.clear();
      for (let n = 0; n < 3; n += 1) {
        expect(await lab.sees('sys_status')).toMatchObject({ armed: true, flight_mode: 'RTL' });
        lab.outbox.clear();
      }
      disturbing.abort();
    });
  });
});
