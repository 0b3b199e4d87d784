/** A vehicle on a UDP socket, usually a multicopter, that behaves like ArduPilot or PX4, for the demo and for tests. */
import { createSocket, type Socket } from 'node:dgram';
import { every } from '../../../src/platform/time.ts';
import { kindOf } from '../reports/kind.ts';
import { parseDatagram } from '../wire/framer.ts';
import { decode, type Decoded, encode, type Messages } from '../wire/messages.ts';
import type { SignFrame } from '../wire/signing.ts';
import { accepted, type Answer, answerInt, answerLong } from './answers.ts';
import { Flight, type Home } from './flight.ts';
import { isMissionMessage, SimMissions, type SimMissionsParts, type Station } from './missions.ts';
import { SimParameters } from './parameters.ts';
import { type SimState, type Telemetry, telemetry, telemetry_ids } from './telemetry.ts';

export interface SimOptions {
  readonly autopilot: 'ardupilot' | 'px4';
  readonly sysid: number;
  /** 16 hexadecimal digits. */
  readonly uid: string;
  /** Where the connector listens. */
  readonly host: string;
  readonly port: number;
  /** Own address; that of the route when omitted. */
  readonly from?: string;
  readonly home: Home;
  readonly airborne: boolean;
  /** MAV_TYPE; a quadrotor when omitted. */
  readonly type?: number;
  /** An ArduPlane with lift motors, whatever its type. */
  readonly quadplane?: boolean;
  /** A text that it sends with its identity, as ArduPilot does with its version; none when omitted. */
  readonly banner?: string;
  /** How long it has been running already. */
  readonly uptime_ms?: number;
}

const compid = 1;
const type_quadrotor = 2;
const stick_middle_us = 1_500;
const stick_range_us = 500;
const dead_zone_us = 100;
/** FS_THR_VALUE. */
const failsafe_us = 975;
/** PILOT_SPEED_UP. */
const stick_climb_max_mps = 2.5;
const takeoff_alt_m = 5;
const takeoff_distance_m = 50;
const step_ms = 50;
/** A process that was stopped for longer continues here: the vehicle did not fly meanwhile. */
const caught_up_max_ms = 2_000;
const heartbeat_ms = 1_000;
/** Reasons are sent after the answer. */
const text_delay_ms = 60;
const text_chars = 50;
const severity_critical = 2;
const severity_info = 6;
/** FENCE_TYPE: height, distance from home and lowest height; areas. */
const fence_limits = 1 | 2 | 8;
const fence_areas = 4;
const command_set_interval = 511;
const command_request_message = 512;
/** PX4 streams without being asked. */
const px4_streams: readonly (readonly [Telemetry, interval_ms: number])[] = [
  ['GLOBAL_POSITION_INT', 200],
  ['ATTITUDE', 200],
  ['SYS_STATUS', 1_000],
  ['GPS_RAW_INT', 500],
  ['ESTIMATOR_STATUS', 500],
  ['EXTENDED_SYS_STATE', 500],
  ['VFR_HUD', 250],
  ['HOME_POSITION', 1_000],
  ['BATTERY_STATUS', 1_000],
  ['POSITION_TARGET_GLOBAL_INT', 500],
  ['ORBIT_EXECUTION_STATUS', 500],
  ['WIND_COV', 2_000],
  ['VIBRATION', 2_000],
  ['MISSION_CURRENT', 1_000],
];

/** What the autopilot does not have. */
const foreign: Readonly<Record<SimOptions['autopilot'], ReadonlySet<Telemetry>>> = {
  ardupilot: new Set(['ESTIMATOR_STATUS', 'ORBIT_EXECUTION_STATUS', 'WIND_COV', 'ALTITUDE']),
  px4: new Set(['EKF_STATUS_REPORT', 'WIND', 'TERRAIN_REPORT']),
};

/** Lives until its signal aborts. */
export class SimVehicle {
  readonly options: SimOptions;
  flight: Flight;
  gps: SimState['gps'] = 'ok';
  pre_arm_ok = true;
  /** Pulse of the pilot's throttle stick; undefined: there is no transmitter. */
  throttle_us: number | undefined = stick_middle_us;
  /** MAV_VTOL_STATE of a quadplane: 3 while it hovers, 4 in forward flight. */
  vtol_state = 3;
  /** Set: it sends nothing unrequested but HIGH_LATENCY2, at this interval. */
  high_latency_ms: number | undefined;
  readonly missions: SimMissions;
  readonly parameters: SimParameters;
  readonly #signal: AbortSignal;
  #socket: Socket | undefined;
  /** 16 hexadecimal digits. */
  uid: string;
  #booted_ms: number;
  /** Up to when it has flown. */
  #flown_ms = 0;
  #heartbeat_due_ms = 0;
  #report_due_ms = 0;
  #seq = 0;
  #text_id: number;
  #hasBanner = false;
  readonly #streams = new Map<Telemetry, { interval_ms: number; due_ms: number }>();

  constructor(options: SimOptions, signal: AbortSignal) {
    this.options = options;
    this.#signal = signal;
    this.uid = options.uid;
    this.#booted_ms = performance.now() - (options.uptime_ms ?? 0);
    this.flight = new Flight(options.home, options);
    const isArduSub = options.autopilot === 'ardupilot' && kindOf(options.type ?? type_quadrotor) === 'sub';
    if (isArduSub && options.airborne) this.flight.dive();
    this.missions = this.makeMissions({
      autopilot: options.autopilot,
      home: options.home,
      reply: (name, fields) => this.send(name, fields),
      say: (text, severity) => this.sendText(text, severity),
    });
    this.parameters = new SimParameters(options.autopilot, (value) => this.send('PARAM_VALUE', value));
    if (options.autopilot === 'ardupilot' && kindOf(options.type ?? type_quadrotor) === 'plane') {
      this.parameters.stored.set('TKOFF_ALT', { value: takeoff_alt_m, isInteger: false });
      this.parameters.stored.set('TKOFF_DIST', { value: takeoff_distance_m, isInteger: false });
    }
    if (options.quadplane === true) this.parameters.stored.set('Q_ENABLE', { value: 1, isInteger: true });
    this.#text_id = options.autopilot === 'px4' ? 0 : 1;
    signal.addEventListener('abort', () => this.#closeSocket(), { once: true });
  }

  /** Opens its socket and starts flying. */
  async start(): Promise<void> {
    this.#beginStreams();
    await this.#openSocket();
    this.#flown_ms = performance.now();
    every(step_ms, this.#signal, () => this.#step());
  }

  /** Restarts the autopilot without its state; behind a radio it keeps its address. */
  async reboot({ keep_port }: { readonly keep_port: boolean } = { keep_port: false }): Promise<void> {
    this.#booted_ms = performance.now();
    this.#seq = 0;
    this.flight = new Flight(this.options.home, { airborne: false });
    this.missions.restart();
    this.#beginStreams();
    if (keep_port) return;
    this.#closeSocket();
    await this.#openSocket();
  }

  /** Stops sending a message unrequested. */
  stopStream(name: Telemetry): void {
    this.#streams.delete(name);
  }

  sendText(text: string, severity = severity_critical): void {
    // PX4 numbers all its texts, from 0; ArduPilot the long ones, from 1.
    const is_numbered = this.options.autopilot === 'px4' || text.length > text_chars;
    const id = is_numbered ? this.#text_id++ : 0;
    for (let at = 0, chunk_seq = 0; at < text.length; at += text_chars, chunk_seq += 1) {
      this.send('STATUSTEXT', { severity, text: text.slice(at, at + text_chars), id, chunk_seq });
    }
  }

  send<K extends keyof Messages>(name: K, fields: Messages[K], from_compid = compid): void {
    const { sysid } = this.options;
    const seq = this.#seq;
    this.#seq = (seq + 1) & 0xff;
    this.transmit(encode(name, fields, { sysid, compid: from_compid, seq, sign: this.signer() }));
  }

  protected makeMissions(parts: SimMissionsParts): SimMissions {
    return new SimMissions(parts);
  }

  /** Signs what is sent. */
  protected signer(): SignFrame | undefined {
    return undefined;
  }

  /** Puts bytes on the wire. */
  protected transmit(bytes: Uint8Array): void {
    const { host, port } = this.options;
    this.#socket?.send(bytes, port, host, () => undefined);
  }

  /** A datagram from the connector. */
  protected receive(bytes: Uint8Array): void {
    parseDatagram(bytes, {
      frame: (frame) => {
        const message = decode(frame);
        if (message) this.handle(message, frame);
      },
    });
  }

  protected handle(
    message: Decoded,
    { sysid, compid: from }: { readonly sysid: number; readonly compid: number },
  ): void {
    const { name, fields } = message;
    if (name === 'TIMESYNC' && fields.tc1 === 0) this.#answerTime(fields);
    if (this.#transfer(message, { sysid, compid: from })) return;
    if (name !== 'COMMAND_LONG' && name !== 'COMMAND_INT') return;
    if (!this.#isFor(fields)) return;
    const answer = this.execute(message);
    if (!answer) return;
    this.send('COMMAND_ACK', {
      command: fields.command,
      result: answer.result,
      progress: 0,
      result_param2: 0,
      target_system: sysid,
      target_component: from,
    });
    this.#sendTextsLater(answer.texts ?? []);
    // ArduPilot shows a change at once, PX4 with its next heartbeat.
    const isRequest = fields.command === command_set_interval || fields.command === command_request_message;
    if (this.options.autopilot === 'ardupilot' && !isRequest) this.#heartbeat_due_ms = 0;
  }

  #answerTime(asked: Messages['TIMESYNC']): void {
    const uptime_ns = Math.round((performance.now() - this.#booted_ms) * 1e6);
    this.send('TIMESYNC', { ...asked, tc1: uptime_ns });
  }

  /** Missions and parameters. Returns whether the message is about them. */
  #transfer(message: Decoded, from: Station): boolean {
    const { name, fields } = message;
    if (isMissionMessage(message)) {
      if (this.#isFor(message.fields)) this.missions.handle(message, from, performance.now());
      return true;
    }
    if (name !== 'PARAM_REQUEST_LIST' && name !== 'PARAM_REQUEST_READ' && name !== 'PARAM_SET') return false;
    if (this.#isFor(fields)) this.parameters.handle(message);
    return true;
  }

  #isFor({
    target_system,
    target_component,
  }: {
    readonly target_system: number;
    readonly target_component: number;
  }): boolean {
    return target_system === this.options.sysid && target_component === compid;
  }

  /** Carries out a command; undefined: no answer. */
  protected execute({
    name,
    fields,
  }: Extract<Decoded, { readonly name: 'COMMAND_INT' | 'COMMAND_LONG' }>): Answer | undefined {
    if (name === 'COMMAND_INT') return answerInt(fields, this.#state());
    if (fields.command === command_set_interval) return this.#setInterval(fields);
    if (fields.command === command_request_message) return this.#sendOnce(fields.param1);
    return answerLong(fields, this.#state());
  }

  /** Called every `step_ms`. */
  protected tick(now_ms: number): void {
    if (this.high_latency_ms !== undefined) {
      if (now_ms < this.#report_due_ms) return;
      this.#report_due_ms = now_ms + this.high_latency_ms;
      this.#sendTelemetry('HIGH_LATENCY2');
      return;
    }
    if (now_ms >= this.#heartbeat_due_ms) {
      this.#heartbeat_due_ms = now_ms + heartbeat_ms;
      this.#sendTelemetry('HEARTBEAT');
    }
    for (const [name, stream] of this.#streams) {
      if (now_ms < stream.due_ms) continue;
      stream.due_ms = now_ms + stream.interval_ms;
      this.#sendTelemetry(name);
    }
  }

  #step(): void {
    this.missions.tick(performance.now());
    this.parameters.tick();
    const { missions } = this;
    const has_mission = (missions.stored[0]?.length ?? 0) > missions.first;
    this.flight.route = has_mission
      ? { target: () => missions.target(this.flight), reached: () => missions.next() }
      : undefined;
    this.#fly(performance.now());
    this.tick(performance.now());
  }

  /** However late this is called, the vehicle flies as fast as time passes. */
  #fly(now_ms: number): void {
    this.#flown_ms = Math.max(this.#flown_ms, now_ms - caught_up_max_ms);
    this.flight.stick_climb_mps = this.#stickClimb_mps();
    for (; now_ms - this.#flown_ms >= step_ms; this.#flown_ms += step_ms) this.flight.step(step_ms / 1_000);
  }

  /**
   * As of an ArduCopter in LOITER (Copter::get_pilot_desired_climb_rate): nothing in the dead zone and below the failsafe value. Without
   * a transmitter older ones sink (ArduPilot#4344), newer ones do not.
   */
  #stickClimb_mps(): number {
    const { autopilot, type = type_quadrotor } = this.options;
    const { throttle_us = 0 } = this;
    const off_us = throttle_us - stick_middle_us;
    if (autopilot !== 'ardupilot' || kindOf(type) !== 'copter' || throttle_us < failsafe_us) return 0;
    if (Math.abs(off_us) <= dead_zone_us) return 0;
    return (
      (stick_climb_max_mps * (off_us - Math.sign(off_us) * dead_zone_us)) / (stick_range_us - dead_zone_us)
    );
  }

  #sendTelemetry(name: Telemetry): void {
    const state = this.#state();
    const fields = telemetry[name](state);
    if (fields) this.send(name, fields);
  }

  #state(): SimState {
    const { autopilot, type = type_quadrotor, quadplane = false } = this.options;
    const { uid, flight, gps, pre_arm_ok, missions, throttle_us, vtol_state } = this;
    return {
      autopilot,
      type,
      kind: quadplane ? 'vtol' : kindOf(type),
      uid,
      flight,
      gps,
      pre_arm_ok,
      missions,
      throttle_us,
      vtol_state,
      climb: {
        alt_m: this.parameters.stored.get('TKOFF_ALT')?.value ?? 0,
        distance_m: this.parameters.stored.get('TKOFF_DIST')?.value ?? 0,
      },
      hasFence: this.#hasFence(),
      parameters: this.parameters.stored,
      boot_ms: Math.round(performance.now() - this.#booted_ms),
    };
  }

  /** AC_Fence::present: an area, or a limit of height or distance from home. */
  #hasFence(): boolean {
    const type = this.parameters.stored.get('FENCE_TYPE')?.value ?? 0;
    const hasAreas = (this.missions.stored[1]?.length ?? 0) > 0;
    return (type & fence_limits) !== 0 || ((type & fence_areas) !== 0 && hasAreas);
  }

  #setInterval({ param1, param2 }: Messages['COMMAND_LONG']): Answer {
    const { autopilot } = this.options;
    const name = telemetry_ids.get(param1);
    if (!name || foreign[autopilot].has(name)) {
      return { result: autopilot === 'px4' ? 4 : 2 };
    }
    this.#streams.set(name, { interval_ms: param2 / 1_000, due_ms: 0 });
    return { result: accepted };
  }

  #sendOnce(msgid: number): Answer {
    const name = telemetry_ids.get(msgid);
    if (!name) return { result: this.options.autopilot === 'px4' ? 2 : 4 };
    this.#sendTelemetry(name);
    const { banner } = this.options;
    if (name === 'AUTOPILOT_VERSION' && banner !== undefined && !this.#hasBanner)
      this.sendText(banner, severity_info);
    this.#hasBanner ||= name === 'AUTOPILOT_VERSION';
    return { result: accepted };
  }

  #sendTextsLater(texts: readonly string[]): void {
    if (texts.length === 0) return;
    const sending = new AbortController();
    every(text_delay_ms, AbortSignal.any([sending.signal, this.#signal]), () => {
      sending.abort();
      for (const text of texts) this.sendText(text);
    });
  }

  #beginStreams(): void {
    this.#streams.clear();
    if (this.options.autopilot !== 'px4') return;
    for (const [name, interval_ms] of px4_streams) this.#streams.set(name, { interval_ms, due_ms: 0 });
  }

  async #openSocket(): Promise<void> {
    const { from } = this.options;
    const socket = createSocket('udp4');
    this.#socket = socket;
    socket.on('message', (bytes) => this.receive(bytes));
    socket.on('error', () => undefined);
    await new Promise<void>((resolve) => {
      socket.bind({ port: 0, ...(from === undefined ? {} : { address: from }) }, resolve);
    });
  }

  #closeSocket(): void {
    this.#socket?.close();
    this.#socket = undefined;
  }
}
