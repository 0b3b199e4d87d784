/** Numbered events of PX4: failed checks, and requests for lost events. */
import { describe, expect, it } from 'vitest';
import {
  EventIntake,
  eventId,
  eventLevel,
  eventText,
  type VehicleEvent,
} from '../../../../../drivers/mavlink/reports/px4-events.ts';
import { texts } from '../../../../../drivers/mavlink/vehicles/texts.ts';
import { texts as refusals } from '../../../../../drivers/mavlink/commands/texts.ts';
import { blank } from '../../../../../drivers/mavlink/wire/messages.ts';
import { withDrone } from '../mavlink-lab.ts';

const error = 0x33;
const warning = 0x44;
const loiter_bit = 1 << 4;
const offboard_bit = 1 << 14;
const every_mode = 0xff_ff_ff_ff;

function bytesOf(modes: number, component: number): number[] {
  return [modes & 0xff, (modes >>> 8) & 0xff, (modes >>> 16) & 0xff, modes >>> 24, component];
}
const eventOf = (name: string, log_levels = error, modes = every_mode, component = 0) => ({
  id: eventId(name),
  log_levels,
  arguments: bytesOf(modes, component),
});
const begin = eventOf('commander_arming_check_summary', 0x88);
const end = eventOf('commander_health_summary', 0x88);

function numbered(events: readonly ReturnType<typeof eventOf>[], first = 0): VehicleEvent[] {
  return events.map((event, index) => ({ ...blank('EVENT'), ...event, sequence: (first + index) & 0xffff }));
}
function intakeOf(events: readonly VehicleEvent[]): EventIntake {
  const intake = new EventIntake();
  for (const event of events) intake.take(event);
  return intake;
}

describe('A PX4 event', () => {
  it('has the id that PX4 derives from its name', () => {
    expect(eventId('commander_arming_check_summary')).toBe(0x01_00_00_00 + 11_047_904);
    const [event] = numbered([eventOf('check_modes_attitude', 0x02)]);
    expect(event && [eventLevel(event), eventText(event)]).toEqual([2, 'no valid attitude']);
    const [unknown] = numbered([eventOf('something_new')]);
    expect(unknown && eventText(unknown)).toBeUndefined();
  });
});

describe('A report of checks', () => {
  it('names each check that fails in the current mode, but no warnings or checks of other modes', () => {
    const events = numbered([
      begin,
      eventOf('check_modes_global_pos', error, loiter_bit, 24),
      eventOf('check_modes_manual_control', warning, every_mode, 7),
      eventOf('check_modes_local_pos', error, offboard_bit, 17),
      eventOf('something_new', error, every_mode, 11),
      end,
    ]);
    const global = 'global position estimate: no valid global position';
    const battery = `battery: check ${eventId('something_new')} failed`;
    expect(intakeOf(events).armingReasons('LOITER')).toEqual([global, battery]);
    expect(intakeOf(events).armingReasons('OFFBOARD')).toEqual([
      'local position estimate: no valid position',
      battery,
    ]);
    expect(intakeOf(events).armingReasons(null)).toHaveLength(3);
  });

  it('counts only when it is complete, also across the wrap of its numbers, and the newest counts', () => {
    const first = numbered([begin, eventOf('check_modes_attitude'), end], 65_534);
    expect(intakeOf(first).armingReasons('LOITER')).toEqual(['unassigned: no valid attitude']);
    expect(intakeOf(first.slice(1)).armingReasons('LOITER')).toBeUndefined();
    expect(intakeOf(first.slice(0, 2)).armingReasons('LOITER')).toBeUndefined();
    expect(intakeOf([...first, ...numbered([begin, end], 1)]).armingReasons('LOITER')).toEqual([]);
  });
});

describe('Lost events', () => {
  it('are requested in one range, three times a second apart, and then dropped', () => {
    const intake = new EventIntake();
    const events = numbered(Array.from({ length: 8 }, () => end));
    expect(intake.take(events[0]!)).toBe(true);
    expect(intake.take(events[0]!)).toBe(false);
    expect(intake.next(0)).toBeUndefined();
    intake.take(events[4]!);
    const range = { first_sequence: 1, last_sequence: 3 };
    expect([0, 500, 1_000, 2_000, 3_000].map((now_ms) => intake.next(now_ms))).toEqual([
      range,
      undefined,
      range,
      range,
      undefined,
    ]);
  });

  it('are not requested after they arrived or after the autopilot has dropped them', () => {
    const intake = new EventIntake();
    const events = numbered(
      Array.from({ length: 8 }, () => end),
      65_533,
    );
    intake.take(events[0]!);
    expect(intake.next(-5_000)).toEqual({ first_sequence: 65_518, last_sequence: 65_532 });
    intake.gone(65_533);
    for (const index of [2, 7]) intake.take(events[index]!);
    intake.take(events[1]!);
    expect(intake.next(0)).toEqual({ first_sequence: 0, last_sequence: 3 });
    intake.gone(2);
    expect(intake.next(1_000)).toEqual({ first_sequence: 2, last_sequence: 3 });
  });

  it('are detected by the number of the newest, and cleared by a restart', () => {
    const intake = new EventIntake();
    intake.current({ sequence: 3, flags: 0 });
    expect(intake.next(0)).toEqual({ first_sequence: 1, last_sequence: 3 });
    intake.restart();
    expect(intake.next(5_000)).toBeUndefined();
    intake.current({ sequence: 900, flags: 0 });
    intake.current({ sequence: 900, flags: 0 });
    expect(intake.next(5_000)).toEqual({ first_sequence: 885, last_sequence: 900 });
  });
});

describe.concurrent('A PX4 that reports its checks', () => {
  it('is not armed for its reported reasons, also when one of its events had to be requested', async () => {
    await withDrone({ autopilot: 'px4' }, async (lab, drone) => {
      drone.pre_arm_ok = false;
      drone.reportEvent(begin);
      drone.reportEvent(eventOf('check_modes_global_pos', error, every_mode, 24), { lost: true });
      drone.reportEvent(end);
      const global = 'global position estimate: no valid global position';
      await lab.sees(
        'sys_status',
        ({ pre_arm_reasons }) => Array.isArray(pre_arm_reasons) && pre_arm_reasons.includes(global),
      );
      expect(drone.event_requests).toEqual([1]);
      await expect(lab.command('arm')).rejects.toThrow(refusals.pre_arm_failed([global]));
      expect(lab.log.at('warn')).toContain(texts.vehicle_event);
    });
  });

  it('refuses with its text and with the failed checks', async () => {
    await withDrone({ autopilot: 'px4' }, async (lab, drone) => {
      for (const event of [begin, eventOf('check_modes_attitude', error, every_mode, 16), end])
        drone.reportEvent(event);
      drone.react = () => ({ result: 1, texts: ['Arming denied: Resolve system health failures first\t'] });
      await expect(lab.command('arm')).rejects.toThrow(
        'refused arm (TEMPORARILY_REJECTED): Arming denied: Resolve system health failures first; attitude estimate: no valid attitude',
      );
    });
  });
});
