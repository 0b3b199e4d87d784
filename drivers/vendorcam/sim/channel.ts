/** One channel of a simulated vendor camera or recorder, with what its firmware has and ignores. */
import { z } from 'zod';

export interface Firmware {
  /** How motion is reported: GetEvents, or the two older commands, or those with plain numbers. */
  alarms: 'events' | 'states' | 'plain numbers' | 'plain states';
  scheduleVersion: 0 | 1;
  /** What SetAlarm does with `enable`; `missing`: there is none. */
  motionSwitch: 'honoured' | 'ignored' | 'missing';
  /** What SetMdAlarm does with the zone; `missing`: the command does not exist. */
  zone: 'honoured' | 'ignored' | 'missing';
  ptzType: number;
  firstPreset: 0 | 1;
}

export const new_firmware: Firmware = {
  alarms: 'events',
  scheduleVersion: 1,
  motionSwitch: 'missing',
  zone: 'honoured',
  ptzType: 2,
  firstPreset: 1,
};

const scope = z.looseObject({ table: z.string() });
const alarmParam = z.looseObject({ enable: z.int().optional(), scope: scope.optional() });
/** Other clients set the sensitivity alone. */
const zoneParam = z.looseObject({ scope: scope.optional() });
const lightParam = z.looseObject({ state: z.int() });
const ai_types = ['people', 'vehicle', 'dog_cat', 'face', 'package'] as const;
const zone_table = '1'.repeat(40) + '0'.repeat(20) + '1'.repeat(20);

type Param = Readonly<Record<string, unknown>>;

export class SimChannel {
  name = 'Gate';
  model = 'RLC-823A';
  firmVer = 'v3.1.0.2347';
  /** Undefined: it does not know the command. */
  osd_name: string | undefined;
  uid: string | undefined;
  online = true;
  asleep = false;
  hasPictures = true;
  hasBattery = false;
  hasSiren = false;
  hasLight = false;
  siren = false;
  light = false;
  motion = false;
  /** Undefined: it is no doorbell. */
  rings: boolean | undefined;
  readonly ai = new Set<string>();
  readonly supported: readonly string[] = ['people', 'vehicle', 'dog_cat'];
  readonly motor = new SimMotor();
  enable = 1;
  zone = { cols: 10, rows: 8, table: zone_table };
  /** Speeds that PtzCtrl was given; null: none. */
  readonly speeds: (number | null)[] = [];
  readonly firmware: Firmware;

  /** By command. */
  readonly #answers: Readonly<Record<string, (cmd: string, param: Param) => SimReply>> = {
    GetEvents: (cmd, { channel }) =>
      this.firmware.alarms === 'events' ? okReply(cmd, this.#events(channel)) : unsupported(cmd),
    GetMdState: (cmd) => okReply(cmd, { state: this.motion ? 1 : 0 }),
    GetAiState: (cmd, { channel }) => okReply(cmd, { channel, ...this.#ai() }),
    PtzCtrl: (_cmd, param) => this.#ptz(param),
    GetPtzPreset: (cmd, { channel }) => okReply(cmd, { PtzPreset: this.#presets(channel) }),
    GetAlarm: (cmd) => okReply(cmd, { Alarm: this.#alarm() }),
    SetAlarm: (_cmd, { Alarm }) => this.#setAlarm(alarmParam.parse(Alarm)),
    GetMdAlarm: (cmd, { channel }) =>
      this.firmware.zone === 'missing'
        ? unsupported(cmd)
        : okReply(cmd, { MdAlarm: { channel, newSens: { sensDef: 25 }, scope: this.zone } }),
    SetMdAlarm: (_cmd, { MdAlarm }) => this.#setZone(zoneParam.parse(MdAlarm)),
    AudioAlarmPlay: (cmd, param) => {
      this.siren = param['manual_switch'] === 1;
      return okReply(cmd, { rspCode: 200 });
    },
    // Other clients offer a siren and a light only where these are answered.
    GetAudioAlarmV20: (cmd, { channel }) =>
      this.hasSiren ? okReply(cmd, { Audio: { enable: 1, schedule: { channel } } }) : unsupported(cmd),
    GetWhiteLed: (cmd, { channel }) =>
      this.hasLight
        ? okReply(cmd, { WhiteLed: { bright: 100, channel, mode: 0, state: this.light ? 1 : 0 } })
        : unsupported(cmd),
    SetWhiteLed: (cmd, { WhiteLed }) => {
      this.light = lightParam.parse(WhiteLed).state === 1;
      return okReply(cmd, { rspCode: 200 });
    },
    Snap: (cmd) => okReply(cmd, {}),
    GetChnTypeInfo: (cmd, { channel }) =>
      okReply(cmd, { boardInfo: '', channel, firmVer: this.firmVer, typeInfo: this.model }),
    GetOsd: (cmd, { channel }) =>
      this.osd_name === undefined
        ? unsupported(cmd)
        : okReply(cmd, { Osd: { channel, osdChannel: { enable: 1, name: this.osd_name } } }),
    GetRtspUrl: (cmd, { channel }) => okReply(cmd, { rtspUrl: streamsOf(channel) }),
  };

  constructor(firmware: Firmware) {
    this.firmware = firmware;
  }

  /** Undefined for a command that is no channel's. */
  answer(cmd: string, param: Param): SimReply | undefined {
    return this.#answers[cmd]?.(cmd, param);
  }

  ability(): Readonly<Record<string, unknown>> {
    const { ptzType } = this.firmware;
    return {
      ptzType: { permit: 0, ver: ptzType },
      ptzCtrl: { permit: 7, ver: ptzType === 0 ? 0 : 1 },
      ptzPreset: { permit: 7, ver: ptzType === 0 ? 0 : 1 },
      alarmMd: { permit: 6, ver: 1 },
      live: { permit: 4, ver: 1 },
      alarmAudio: { permit: 6, ver: this.hasSiren ? 1 : 0 },
      floodLight: { permit: 6, ver: this.hasLight ? 1 : 0 },
      snap: { permit: 6, ver: this.hasPictures ? 1 : 0 },
      battery: { permit: 4, ver: this.hasBattery ? 1 : 0 },
    };
  }

  #events(channel: unknown) {
    const crossline = [{ index: 0, enable: 1, support: 1, people_state: 1 }];
    const md = { alarm_state: this.motion ? 1 : 0, support: 1 };
    const visitor = { alarm_state: this.rings ? 1 : 0, support: this.rings === undefined ? 0 : 1 };
    return { ai: { ...this.#ai(), crossline }, channel, md, visitor };
  }

  #ai(): Readonly<Record<string, unknown>> {
    const states = ai_types.map((type) => {
      const alarm_state = this.ai.has(type) ? 1 : 0;
      return [type, { alarm_state, support: this.supported.includes(type) ? 1 : 0 }] as const;
    });
    if (this.firmware.alarms === 'plain states') {
      return { people_state: this.ai.has('people') ? 1 : 0, vehicle_state: this.ai.has('vehicle') ? 1 : 0 };
    }
    if (this.firmware.alarms !== 'plain numbers') return Object.fromEntries(states);
    return { face: this.ai.has('face') ? 1 : 0, people: this.ai.has('people') ? 1 : 0, vehicle: 0 };
  }

  #ptz(param: Readonly<Record<string, unknown>>): SimReply {
    const { op, speed, id } = param;
    const { ptzType, firstPreset } = this.firmware;
    if (ptzType === 0) return unsupported('PtzCtrl');
    if (ptzType === 5 && speed !== undefined) return errorReply('PtzCtrl', -4, 'param error');
    if (op !== 'Stop') this.speeds.push(typeof speed === 'number' ? speed : null);
    if (op === 'ToPos') {
      if (Number(id) > firstPreset + 1) return errorReply('PtzCtrl', -4, 'param error');
      this.motor.jumpTo(100 + Number(id));
    } else if (!this.motor.operate(String(op), Number(speed ?? 32))) {
      return errorReply('PtzCtrl', -4, 'param error');
    }
    return okReply('PtzCtrl', { rspCode: 200 });
  }

  #presets(channel: unknown) {
    const { firstPreset } = this.firmware;
    return [
      { channel, enable: 1, id: firstPreset, name: 'Door' },
      { channel, enable: 1, id: firstPreset + 1, name: 'Wall' },
      { channel, enable: 0, id: firstPreset + 2, name: '' },
    ];
  }

  #alarm() {
    const common = { type: 'md', action: { mail: 1, push: 1 }, scope: this.zone };
    const { motionSwitch } = this.firmware;
    if (motionSwitch === 'missing') return common;
    return { ...common, enable: this.enable };
  }

  #setAlarm(alarm: z.output<typeof alarmParam>): SimReply {
    const { motionSwitch, zone } = this.firmware;
    if (motionSwitch === 'honoured') this.enable = alarm.enable ?? this.enable;
    if (zone === 'missing' && motionSwitch === 'missing' && alarm.scope)
      this.zone = { ...this.zone, ...alarm.scope };
    return okReply('SetAlarm', { rspCode: 200 });
  }

  #setZone({ scope }: z.output<typeof zoneParam>): SimReply {
    if (this.firmware.zone === 'honoured' && scope) this.zone = { ...this.zone, table: scope.table };
    return okReply('SetMdAlarm', { rspCode: 200 });
  }
}

function unsupported(cmd: string): SimReply {
  return errorReply(cmd, -9, 'not support');
}

function streamsOf(channel: unknown): Param {
  const mainStream = 'rtsp://192.0.2.10:554/Preview_01_main';
  const subStream = `rtsp://192.0.2.10:554/Preview_0${Number(channel) + 1}_sub`;
  return { channel, mainStream, subStream };
}

// The motor of a simulated vendor camera: moves until it receives a stop or reaches its end stop, like the real ones.

/** Degrees per second at speed 1. */
const degrees_per_speed = 0.5;
const end_stop_deg = 175;
const directions: Readonly<Record<string, readonly [number, number]>> = {
  Left: [-1, 0],
  Right: [1, 0],
  Up: [0, 1],
  Down: [0, -1],
};
const zooms: Readonly<Record<string, number>> = { ZoomInc: 1, ZoomDec: -1 };

export class SimMotor {
  #x = 0;
  #y = 0;
  #velocity: readonly [number, number] = [0, 0];
  #since_ms = performance.now();
  stops = 0;
  /** Direction in which the lens moves: 1 in, -1 out. */
  zoom = 0;

  get isMoving(): boolean {
    return this.#velocity[0] !== 0 || this.#velocity[1] !== 0;
  }

  get position(): { readonly x: number; readonly y: number } {
    const seconds = (performance.now() - this.#since_ms) / 1_000;
    const at = (from: number, speed: number): number =>
      Math.max(-end_stop_deg, Math.min(end_stop_deg, from + speed * seconds));
    return { x: at(this.#x, this.#velocity[0]), y: at(this.#y, this.#velocity[1]) };
  }

  /** False for an operation that is not known. */
  operate(op: string, speed: number): boolean {
    const direction = directions[op];
    const zoom = zooms[op];
    if (op !== 'Stop' && !direction && zoom === undefined) return false;
    this.zoom = zoom ?? 0;
    ({ x: this.#x, y: this.#y } = this.position);
    this.#since_ms = performance.now();
    const [x, y] = direction ?? [0, 0];
    this.#velocity = [x * speed * degrees_per_speed, y * speed * degrees_per_speed];
    if (op === 'Stop') this.stops += 1;
    return true;
  }

  jumpTo(x: number): void {
    this.#x = x;
    this.#velocity = [0, 0];
    this.#since_ms = performance.now();
  }
}

// The shapes of the vendor's replies.

export type SimReply = Readonly<Record<string, unknown>>;

export interface SimCommand {
  readonly cmd: string;
  readonly param?: Readonly<Record<string, unknown>> | undefined;
}

export function okReply(cmd: string, value: unknown): SimReply {
  return { cmd, code: 0, value };
}

export function errorReply(cmd: string, rspCode: number, detail = ''): SimReply {
  return { cmd, code: 1, error: { detail, rspCode } };
}
