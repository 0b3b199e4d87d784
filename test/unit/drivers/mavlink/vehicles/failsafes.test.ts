/** Texts of vehicles and their failsafes, as ArduPilot, PX4, iNav and Betaflight report them. */
import { describe, expect, it } from 'vitest';
import { LatestMessages } from '../../../../../drivers/mavlink/reports/latest-messages.ts';
import { eventId } from '../../../../../drivers/mavlink/reports/px4-events.ts';
import { telemetry } from '../../../../../drivers/mavlink/sim/telemetry.ts';
import { Failsafes } from '../../../../../drivers/mavlink/vehicles/failsafes.ts';
import { blank, type Decoded, type Messages } from '../../../../../drivers/mavlink/wire/messages.ts';
import { assetId } from '../../../../../src/contract/identity.ts';
import { channels } from '../../../../../src/contract/topics.ts';
import { kit_id } from '../../../../support/kit/hub-lab.ts';
import { drone_key, type MavlinkLab, withDrone } from '../mavlink-lab.ts';

const armed = 128;
const states = { standby: 3, active: 4, critical: 5, emergency: 6, termination: 8 } as const;

type Step =
  | { readonly text: string; readonly severity?: number }
  | { readonly beat: keyof typeof states; readonly armed?: boolean }
  | { readonly charge_state: number; readonly id?: number }
  | { readonly breach: number; readonly type?: number }
  /** Nothing for so long. */
  | { readonly later_ms: number }
  /** Bits of sensors that have failed. */
  | { readonly failed: number; readonly enabled?: number };

/** Returns the failsafes that are shown after each change. */
function shown(steps: readonly Step[], autopilot: 'ardupilot' | 'px4' | 'other' = 'ardupilot') {
  const latest = new LatestMessages();
  let now_ms = 0;
  const published: string[] = [];
  const failsafes = new Failsafes(({ types }) => published.push(types.join(' ')));
  const receive = (message: Decoded): void => {
    latest.put(message, now_ms);
    failsafes.receive(message, { autopilot, latest }, now_ms);
  };
  for (const step of [{ beat: 'active' } as const, ...steps]) {
    if ('later_ms' in step) now_ms += step.later_ms;
    else if ('text' in step) failsafes.text({ severity: 2, ...step });
    else if ('beat' in step) receive({ name: 'HEARTBEAT', fields: heartbeat(step) });
    else if ('charge_state' in step)
      receive({ name: 'BATTERY_STATUS', fields: { ...telemetry.BATTERY_STATUS(), id: 0, ...step } });
    else if ('breach' in step) receive({ name: 'FENCE_STATUS', fields: fence(step) });
    else receive({ name: 'SYS_STATUS', fields: sensors(step) });
  }
  return published;
}

function heartbeat(step: Extract<Step, { readonly beat: unknown }>): Messages['HEARTBEAT'] {
  const base_mode = step.armed === false ? 0 : armed;
  return { ...blank('HEARTBEAT'), type: 2, autopilot: 3, base_mode, system_status: states[step.beat] };
}

function fence({ breach, type = 1 }: Extract<Step, { readonly breach: unknown }>): Messages['FENCE_STATUS'] {
  return { ...blank('FENCE_STATUS'), breach_status: breach, breach_count: 1, breach_type: type };
}

const every_sensor = 0x7fff_ffff;
function sensors({
  failed,
  enabled = every_sensor,
}: Extract<Step, { readonly failed: unknown }>): Messages['SYS_STATUS'] {
  return {
    ...blank('SYS_STATUS'),
    onboard_control_sensors_present: every_sensor,
    onboard_control_sensors_enabled: enabled,
    onboard_control_sensors_health: ~failed >>> 0,
  };
}

const critical = { beat: 'critical' } as const;
const active = { beat: 'active' } as const;
const fence_off = { failed: 0, enabled: 0 };

type Row = readonly [name: string, steps: readonly Step[], expected: readonly string[], by?: 'px4' | 'other'];

// What the autopilots send: ArduCopter, ArduPlane and Rover events.cpp, ekf_check.cpp, crash_check.cpp, AC_Fence, ArduSub failsafe.cpp.
const rows: readonly Row[] = [
  ['none', [active, { text: 'EKF3 IMU0 is using GPS', severity: 6 }], ['']],
  [
    'the battery, until it is no longer critical',
    [{ text: 'Battery Failsafe', severity: 4 }, critical, active],
    ['', 'battery', ''],
  ],
  ['the battery by its state alone', [{ charge_state: 3 }, { charge_state: 1 }], ['', 'battery', '']],
  ['the worst of several batteries', [{ charge_state: 5, id: 1 }, { charge_state: 1 }], ['', 'battery']],
  ['no battery that is only low', [{ charge_state: 2 }], ['']],
  [
    'a low battery of a vehicle that is critical',
    [{ charge_state: 2 }, critical, critical, critical],
    ['', 'battery'],
  ],
  [
    'the ground station',
    [{ text: 'GCS Failsafe' }, critical, { text: 'GCS Failsafe Cleared', severity: 4 }],
    ['', 'link', ''],
  ],
  ['the ground station of a Sub', [{ text: 'MYGCS: 255, heartbeat lost', severity: 4 }], ['', 'link']],
  [
    'the estimator',
    [{ text: 'EKF Failsafe: changed to LAND Mode' }, critical, { text: 'EKF Failsafe Cleared' }],
    ['', 'ekf', ''],
  ],
  ['dead reckoning', [{ text: 'Dead Reckoning Failsafe' }], ['', 'ekf']],
  [
    'the transmitter of a copter',
    [{ text: 'Radio Failsafe - Disarming', severity: 4 }, critical, active],
    ['', 'rc', ''],
  ],
  [
    'the transmitter of a plane',
    [
      { text: 'RC Long Failsafe On: switched to RTL', severity: 4 },
      critical,
      { text: 'RC Long Failsafe Cleared', severity: 4 },
    ],
    ['', 'rc', ''],
  ],
  [
    'the transmitter of an older plane',
    [
      { text: 'Failsafe. Short event on: type=1/reason=3', severity: 4 },
      { text: 'Failsafe. Short event off: reason=3', severity: 4 },
    ],
    ['', 'rc', ''],
  ],
  [
    'two at once',
    [{ text: 'Radio + Battery Failsafe - Continuing Landing', severity: 4 }],
    ['', 'battery rc'],
  ],
  ['the fence, by its state', [{ breach: 1 }, { breach: 0 }], ['', 'fence', '']],
  [
    'the fence, by its text',
    [{ text: 'Circle fence breached', severity: 4 }, { breach: 0 }],
    ['', 'fence', ''],
  ],
  // ArduPilot clears the breach then, and sends no FENCE_STATUS any more (GCS_Fence.cpp).
  [
    'the fence, until the pilot disables it',
    [{ breach: 1 }, { later_ms: 3_000 }, fence_off, { later_ms: 20_000 }, fence_off],
    ['', 'fence', ''],
  ],
  ['the fence that only reports', [{ breach: 1 }, fence_off, { breach: 1 }, fence_off], ['', 'fence']],
  ['the fence over an outage', [{ breach: 1 }, { later_ms: 20_000 }, { failed: 0 }], ['', 'fence']],
  ['missing terrain', [{ text: 'Failsafe: Terrain data missing' }], ['', 'terrain']],
  [
    'a crash, until it is armed again',
    [
      { text: 'Crash: Disarming: AngErr=45>30, Accel=1.2<3.0', severity: 0 },
      { beat: 'standby', armed: false },
      active,
    ],
    ['', 'crash', ''],
  ],
  ['a lost motor', [{ text: 'Potential Thrust Loss (2)', severity: 0 }], ['', 'motor']],
  ['a leak', [{ text: 'Leak Detected' }], ['', 'leak']],
  [
    'no reason why it cannot be armed',
    [{ text: 'PreArm: Radio failsafe on' }, { text: 'Arm: GCS failsafe on' }],
    [''],
  ],
  ['no text that only informs', [{ text: 'Failsafe: RTL disabled', severity: 6 }], ['']],
  [
    'an unknown one, by the heartbeat alone, once it lasts',
    [critical, critical, critical, active],
    ['', 'other', ''],
    'other',
  ],
  [
    'by the sensors, where the kit has missed the texts',
    [{ failed: 0x1_0000 }, critical, critical, critical],
    ['', 'rc'],
  ],
  [
    'no unknown one beside one that is known',
    [critical, critical, critical, { text: 'Battery Failsafe' }],
    ['', 'other', 'battery'],
  ],
  ['flight termination', [{ beat: 'termination' }, active], ['', 'termination', '']],
  [
    'an emergency of a plane that has crashed',
    [{ text: 'Crash detected' }, { beat: 'emergency' }],
    ['', 'crash'],
  ],
  [
    'one of a PX4 that its heartbeats do not show',
    [{ text: 'Failsafe activated' }, active, active, active],
    ['', 'other', ''],
    'px4',
  ],
];

describe('The failsafes of a vehicle', () => {
  it.each(rows.map(([name, steps, expected, by]) => ({ name, steps, expected, by })))(
    'are $name',
    ({ steps, expected, by }) => {
      expect(shown(steps, by)).toEqual(expected);
    },
  );
});

describe('The fence of an ArduPilot', () => {
  it('is no longer breached once the pilot has disabled it', async () => {
    await withDrone({ airborne: true }, async (lab, drone) => {
      drone.fills = { SYS_STATUS: { onboard_control_sensors_enabled: 0 } };
      drone.send('FENCE_STATUS', fence({ breach: 1, type: 3 }));
      drone.withheld.add('FENCE_STATUS');
      expect(await lab.sees('fence', ({ breached }) => breached === true)).toMatchObject({ breach_count: 1 });
      const off = { breached: false, breach_count: 1, breach_type: 'none' };
      expect(await lab.sees('fence', ({ breach_type }) => breach_type === 'none')).toEqual(off);
    });
  });
});

const isEvent = (channel: string, name: string): boolean =>
  channel === channels.event(assetId(kit_id, drone_key), name);
const eventsOf = ({ outbox }: MavlinkLab, name: string): readonly unknown[] =>
  outbox.drafts.filter(({ channel }) => isEvent(channel, name)).map(({ data }) => data);
const untilFailsafe = async ({ outbox }: MavlinkLab, type: string): Promise<unknown> =>
  (
    await outbox.until(
      ({ channel, data }) => isEvent(channel, 'failsafe') && JSON.stringify(data).includes(`"${type}"`),
    )
  ).data;

describe.concurrent('The texts of a vehicle', () => {
  it('are a feed in which repeats are one, and from warning on an alarm', async () => {
    await withDrone({}, async (lab, drone) => {
      drone.sendText('EKF3 IMU0 is using GPS', 6);
      const long = 'Battery 1 is low 10.61V used 1043 mAh, which is a text of more than fifty characters';
      drone.sendText(long, 4);
      drone.sendText('PreArm: Compass not calibrated', 2);
      drone.sendText(long, 4);
      drone.sendText('GCS Failsafe', 2);
      const { messages } = await lab.sees('messages', (data) =>
        JSON.stringify(data).includes('GCS Failsafe'),
      );
      expect(messages).toMatchObject([
        { text: 'GCS Failsafe', severity: 'critical', count: 1 },
        { text: long, severity: 'warning', count: 2 },
        { text: 'PreArm: Compass not calibrated', severity: 'critical' },
        { text: 'EKF3 IMU0 is using GPS', severity: 'info' },
      ]);
      await untilFailsafe(lab, 'link');
      expect(eventsOf(lab, 'alarm')).toMatchObject([
        { text: long, severity: 'warning' },
        { text: 'GCS Failsafe', severity: 'critical' },
      ]);
      expect(eventsOf(lab, 'failsafe')).toMatchObject([
        { detected: false, types: [], causes: [] },
        { detected: true, types: ['link'], causes: [{ type: 'link', reason: 'GCS Failsafe' }] },
      ]);
    });
  });

  it('of a PX4 that enters a failsafe name its cause by the number of its event', async () => {
    await withDrone({ autopilot: 'px4' }, async (lab, drone) => {
      const enter = { id: eventId('commander_failsafe_enter'), log_levels: 0x22 };
      drone.reportEvent({ ...enter, arguments: [0, 0, 4, 5, 6, 3] });
      const failsafe = await untilFailsafe(lab, 'battery');
      expect(failsafe).toMatchObject({ detected: true, types: ['battery'] });
    });
  });
});
