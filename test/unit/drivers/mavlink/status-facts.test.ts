/** Facts of the links in `kit-connector status`. */
import { describe, expect, it } from 'vitest';
import { componentLosses, radioText } from '../../../../drivers/mavlink/status-facts.ts';
import { texts as command_texts } from '../../../../drivers/mavlink/commands/texts.ts';
import { withDrone, withLab } from './mavlink-lab.ts';
import { eventually } from '../../../support/eventually.ts';

const statsOf = (compid: number, received: number, lost: number, peer = 'here') => ({
  peer,
  sysid: 1,
  compid,
  received,
  lost,
});

describe('MAVLink status facts', () => {
  it('show the loss of each component over all its addresses, the worst first', () => {
    expect(componentLosses([statsOf(1, 99, 1), statsOf(100, 50, 50), statsOf(1, 100, 0, 'there')])).toBe(
      '1/100 50.0 %, 1/1 0.5 %',
    );
    expect(componentLosses([])).toBe('');
  });

  it('count the components that do not fit the line', () => {
    const many = Array.from({ length: 10 }, (_, index) => statsOf(index + 1, 100, index));
    expect(componentLosses(many)).toMatch(/^1\/10 8\.3 %, .*1\/3 2\.0 %, and 2 more$/u);
  });

  it('show a question mark for a value that the radio does not report', () => {
    const radio = { rxerrors: 3, fixed: 0, rssi: 190, remrssi: 255, txbuf: 100, noise: 40, remnoise: 255 };
    expect(radioText(radio)).toBe('here 190 noise 40, remote ? noise ?, 3 errors');
  });

  it('show the losses of a link and the report of its radio', async () => {
    await withLab(async (lab) => {
      const drone = await lab.fly({ autopilot: 'px4', airborne: true });
      await lab.until('online');
      drone.lose_every = 4;
      const facts = () => lab.hub.drivers().find(({ name }) => name === 'drones')?.facts ?? {};
      await eventually('the status is reported', () => {
        drone.reportRadio(190);
        return 'field radio' in facts();
      });
      expect(facts()).toMatchObject({ vehicles: 1, online: 1 });
      expect(facts()['field']).toMatch(/^up, \d+ frames, \d+\.\d % lost$/u);
      expect(facts()['field loss']).toMatch(/1\/1 \d+\.\d %/u);
      expect(facts()['field radio']).toBe('here 190 noise 40, remote 180 noise 45, 3 errors');
    });
  });

  it('show mode, arming and battery of each vehicle, and since when one is offline', async () => {
    await withDrone({ airborne: true }, async (lab, drone) => {
      const facts = () => lab.hub.drivers().find(({ name }) => name === 'drones')?.facts ?? {};
      const shown = () => String(facts()['Quadrotor 1 (system 1)'] ?? '');
      await lab.sees('battery');
      await eventually(
        'the vehicle is shown',
        () => shown() === 'AUTO, armed, airborne, battery 76 %, 15.8 V',
      );
      drone.flight.armed = false;
      drone.flight.height_m = 0;
      drone.flight.mode = 'LOITER';
      drone.pre_arm_ok = false;
      drone.sendText('PreArm: Compass not calibrated');
      await eventually(
        'the changes are shown',
        () =>
          shown() ===
          `LOITER, disarmed, ${command_texts.pre_arm_failed(['PreArm: Compass not calibrated'])}, battery 76 %, 15.8 V`,
      );
      drone.silent = true;
      await eventually('it is shown as offline', () => /^offline for \d+ s$/u.test(shown()));
    });
  });
});
