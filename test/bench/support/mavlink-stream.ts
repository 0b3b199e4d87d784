/** Made-up telemetry as an ArduPilot sends it to a ground station, written by node-mavlink. */
import {
  ardupilotmega,
  common,
  type MavLinkData,
  type MavLinkDataConstructor,
  MavLinkProtocolV2,
  minimal,
  standard,
} from 'node-mavlink';

/** What an ArduPilot sends to a ground station, and how often in relation to each other: 31 kinds. */
export const mix: Readonly<Record<string, number>> = {
  ATTITUDE: 100,
  VFR_HUD: 50,
  LOCAL_POSITION_NED: 50,
  GLOBAL_POSITION_INT: 50,
  GPS_RAW_INT: 50,
  SYS_STATUS: 20,
  SERVO_OUTPUT_RAW: 20,
  EKF_STATUS_REPORT: 20,
  WIND: 20,
  RAW_IMU: 20,
  MISSION_CURRENT: 20,
  MEMINFO: 20,
  POWER_STATUS: 20,
  HWSTATUS: 20,
  BATTERY_STATUS: 20,
  RC_CHANNELS: 20,
  SCALED_PRESSURE: 20,
  NAV_CONTROLLER_OUTPUT: 20,
  SCALED_IMU2: 20,
  AHRS2: 20,
  AHRS: 20,
  VIBRATION: 20,
  SYSTEM_TIME: 10,
  EXTENDED_SYS_STATE: 10,
  RADIO_STATUS: 10,
  HEARTBEAT: 10,
  TERRAIN_REPORT: 10,
  PARAM_VALUE: 5,
  HOME_POSITION: 2,
  TIMESYNC: 1,
  STATUSTEXT: 1,
};

export type LibraryMessage = MavLinkDataConstructor<MavLinkData>;
export const library = new Map(
  [minimal, standard, common, ardupilotmega]
    .flatMap(({ REGISTRY }): LibraryMessage[] => Object.values(REGISTRY))
    .map((message) => [message.MSG_NAME, message]),
);

/** One name for each share of the mix. */
export const deck = Object.entries(mix).flatMap(([name, share]) => Array<string>(share).fill(name));

/** The name at this place of an endless shuffled deck. */
export function dealt(index: number): string {
  return deck[(index * 7_919) % deck.length] ?? '';
}

/** So many messages of one vehicle, one behind the other. */
export function makeStream(messages: number): Buffer {
  const random = lehmer();
  const protocol = new MavLinkProtocolV2(1, 1);
  const frames = Array.from({ length: messages }, (_, index) =>
    protocol.serialize(filled(dealt(index), random), index & 0xff),
  );
  return Buffer.concat(frames);
}

/** A message whose fields are plausible in size: extensions and the ends of arrays are zero, as autopilots leave them. */
export function filled(name: string, random: () => number): MavLinkData {
  const Message = library.get(name);
  if (Message === undefined) throw new Error(`node-mavlink does not define ${name}`);
  const message = new Message();
  for (const { name, type, length, extension } of Message.FIELDS) {
    const number = extension ? 0 : Math.floor(random() * 100) + 1;
    const each = type.includes('64') ? BigInt(number) : number;
    const list = Array.from({ length }, (_, index) => (index < 4 ? number : 0));
    const value = type === 'char[]' ? 'PreArm: check' : list;
    Object.assign(message, { [name]: length > 0 ? value : each });
  }
  return message;
}

/** The same numbers in every run. */
export function lehmer(): () => number {
  let state = 1;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}
