/** A simulated vehicle that a test controls: it can refuse, fall silent, lose packets, restart and send garbage. */
import { createSocket, type Socket } from 'node:dgram';
import { EventEmitter } from 'node:events';
import { stx_v2 } from '../../drivers/mavlink/wire/frame.ts';
import { blank, type Decoded, encode, type Messages } from '../../drivers/mavlink/wire/messages.ts';
import { mode_names, modeNumbers } from '../../drivers/mavlink/vehicles/modes.ts';
import type { SignFrame } from '../../drivers/mavlink/wire/signing.ts';
import { type Answer } from '../../drivers/mavlink/sim/answers.ts';
import { asMavlink1 } from './mavlink1.ts';
import type { VehicleFiles } from './vehicle-files.ts';
import { isLogMessage, type StoredLogs } from './stored-logs.ts';
import { type Telemetry, telemetry_ids } from '../../drivers/mavlink/sim/telemetry.ts';
import { type SimOptions, SimVehicle } from '../../drivers/mavlink/sim/sim-vehicle.ts';

type CommandMessage = Extract<Decoded, { readonly name: 'COMMAND_INT' | 'COMMAND_LONG' }>;
/** What the vehicle does with one command. `execute`: the autopilot's behaviour. */
type Reaction = (command: CommandMessage['fields'], execute: () => Answer | undefined) => Answer | undefined;

interface FakeCamera {
  readonly vendor: string;
  readonly model: string;
  /** Its number, where the autopilot answers for it; ArduPilot leaves it 0 and counts the lens. */
  readonly camera_device_id?: number;
  readonly lens_id?: number;
  readonly gimbal_device_id?: number;
  readonly streams?: readonly Partial<Messages['VIDEO_STREAM_INFORMATION']>[];
}

const camera_component = 100;
/** Streams of ArduPilot before 4.0 (ArduCopter/GCS_Mavlink.cpp). */
const stream_groups: Readonly<Record<number, readonly Telemetry[]>> = {
  2: ['SYS_STATUS', 'MISSION_CURRENT', 'GPS_RAW_INT', 'NAV_CONTROLLER_OUTPUT', 'POSITION_TARGET_GLOBAL_INT'],
  3: ['RC_CHANNELS'],
  6: ['GLOBAL_POSITION_INT'],
  10: ['ATTITUDE'],
  11: ['VFR_HUD'],
  12: ['WIND', 'BATTERY_STATUS', 'EKF_STATUS_REPORT', 'VIBRATION'],
};
const older_requests: Readonly<Record<number, keyof Messages>> = {
  410: 'HOME_POSITION',
  520: 'AUTOPILOT_VERSION',
};
/** Of the pilot's ground station. */
const pilot_system = 255;

export const field = { lat: 47.397742, lon: 8.545594, alt_amsl_m: 488 } as const;

export class FakeDrone extends SimVehicle {
  /** Commands that arrived, by number. Requests for messages are not among them. */
  readonly commands: CommandMessage['fields'][] = [];
  /** Ids of the messages that were asked for. */
  readonly requests: number[] = [];
  /** A camera that the vehicle carries; it beats with the vehicle. */
  camera: FakeCamera | undefined;
  /** Cameras that the autopilot answers for. */
  proxied: readonly FakeCamera[] = [];
  /** Flight modes that the vehicle lists when it is asked. */
  modes: readonly {
    readonly custom_mode: number;
    readonly mode_name: string;
    readonly standard_mode?: number;
  }[] = [];
  /** Files that it serves by MAVLink FTP, as PX4 does its metadata. */
  files: VehicleFiles | undefined;
  /** When its flight began, in seconds since its start; undefined: it does not report that. */
  takeoff_s: number | undefined;
  /** Logs that it serves by the messages for them. */
  logs: StoredLogs | undefined;
  /** Shown in the heartbeat instead of the mode of the flight. */
  odd_mode: number | undefined;
  /** The newest is last; its place is its sequence number. */
  readonly events: {
    readonly id: number;
    readonly arguments: readonly number[];
    readonly log_levels: number;
  }[] = [];
  /** Sequence numbers that were asked for. */
  readonly event_requests: number[] = [];
  /** Heartbeats that arrived, with who sent them. */
  readonly beats: {
    readonly sysid: number;
    readonly compid: number;
    readonly fields: Messages['HEARTBEAT'];
  }[] = [];
  /** Datagrams that arrived. */
  received = 0;
  received_bytes = 0;
  /** Answers instead of the autopilot. */
  react: Reaction | undefined;
  silent = false;
  /** Announced in its heartbeats instead of what it is. */
  announced: Partial<Messages['HEARTBEAT']> = {};
  /** Its clock in GLOBAL_POSITION_INT, as of iNav and Betaflight. */
  counts_microseconds = false;
  /** It receives nothing. */
  deaf = false;
  /** How long a frame takes to it and back; none overtakes another. */
  lag_ms = 0;
  /** Its heartbeats come so rarely: a slow radio. */
  beat_every_ms = 0;
  /** Whether the next frame on a link is lost, in either direction. */
  loses: (() => boolean) | undefined;
  /** Called with each request for parameters. */
  onParameters: (() => void) | undefined;
  /** Messages that are lost on the way out, by name. */
  readonly withheld = new Set<keyof Messages>();
  /** Each so many'th frame of each message is lost on the way out; 0: none. All counted together, the pace of the telemetry would meet every heartbeat. */
  lose_every = 0;
  sign: SignFrame | undefined;
  /** Messages that its firmware does not have. */
  lacks: ReadonlySet<Telemetry> = new Set();
  /** Fields as its firmware fills them: what it does not know of yet is 0, which MAVLink 2 does not send. */
  fills: { readonly [K in keyof Messages]?: Partial<Messages[K]> } = {};
  /** ArduPilot before 4.0: it knows REQUEST_DATA_STREAM, and neither intervals nor requests for a message (ArduPilot#12355). */
  streams_only = false;
  /** Its frames are MAVLink 1, and messages that do not fit are not sent. */
  speaks_mavlink1 = false;
  /**
   * It changes to MAVLink 2 with the first such frame that it receives: PX4 up to 1.16 as delivered (MAV_PROTO_VER 0, until
   * PX4-Autopilot#25583), and ArduPilot (mavlink#630).
   */
  changes_to_mavlink2 = false;
  /** Its longer hardware id, which MAVLink 1 cannot carry. */
  uid2: readonly number[] = [];
  /** MAVLink 2 frames are noise to it. */
  reads_mavlink1_only = false;
  /** It returns home when the station with system id 255, once heard, is silent for this long (FS_GCS_ENABLE). */
  gcs_failsafe_ms: number | undefined;
  /** Frames that arrive over one of its links leave over the other one, as autopilots do. */
  forwards = false;
  readonly #arrived = new EventEmitter<{ command: [CommandMessage['fields']] }>();
  readonly #stopping: AbortController;
  /** Frames sent, by the low byte of the message's number. */
  readonly #sent = new Uint32Array(256);
  #second: Socket | undefined;
  #second_port = 0;
  #first_gone = false;
  #is_from_second = false;
  #pilot_ms: number | undefined;
  #beat_ms = Number.NEGATIVE_INFINITY;
  #sender: FakeDrone | undefined;
  #listener: FakeDrone | undefined;

  constructor(options: Pick<SimOptions, 'port'> & Partial<SimOptions>) {
    const stopping = new AbortController();
    super(
      {
        autopilot: 'ardupilot',
        sysid: 1,
        uid: '00000000c0ffee01',
        host: '127.0.0.1',
        home: field,
        airborne: false,
        ...options,
      },
      stopping.signal,
    );
    this.#stopping = stopping;
  }

  stop(): void {
    this.#second?.close();
    this.#second = undefined;
    this.#stopping.abort();
  }

  /** Resolves with the next command of this number. */
  async next(command: number): Promise<CommandMessage['fields']> {
    return new Promise((resolve) => {
      const listener = (fields: CommandMessage['fields']): void => {
        if (fields.command !== command) return;
        this.#arrived.off('command', listener);
        resolve(fields);
      };
      this.#arrived.on('command', listener);
    });
  }

  /** Sends everything over a second link too, as routers do, and receives over both. */
  alsoTo(port: number): void {
    this.#second = createSocket('udp4');
    this.#second.on('message', (bytes) => {
      this.#is_from_second = true;
      this.receive(bytes);
      this.#is_from_second = false;
    });
    this.#second_port = port;
  }

  /** The first link is gone. */
  onlyTo(port: number): void {
    this.#second_port = port;
    this.#first_gone = true;
  }

  /** Sends from the address of the other one, like two vehicles whose radios have one net id. */
  shareAddressOf(other: FakeDrone): void {
    this.#sender = other;
    other.#listener = this;
  }

  /** Bytes that are no MAVLink, from the vehicle's own address. */
  sendRaw(bytes: Uint8Array): void {
    this.carry(bytes);
  }

  /** Puts bytes on the vehicle's own line. */
  protected carry(bytes: Uint8Array): void {
    const sent = this.speaks_mavlink1 ? asMavlink1(bytes) : bytes;
    if (sent) super.transmit(sent);
  }

  /** The part of the vehicle that is not its autopilot. */
  beatCamera(): void {
    const about = { type: 30, autopilot: 8, system_status: 4, mavlink_version: 3 };
    this.send('HEARTBEAT', { ...blank('HEARTBEAT'), ...about }, camera_component);
  }

  /** A telemetry radio puts its report into the stream under its own name. */
  reportRadio(rssi: number): void {
    const report = { rxerrors: 3, fixed: 0, rssi, remrssi: 180, txbuf: 100, noise: 40, remnoise: 45 };
    const envelope = { sysid: 51, compid: 68, seq: 0 };
    this.sendRaw(encode('RADIO_STATUS', report, envelope));
  }

  /** Sends an event; `lost`: it is recorded but not sent. */
  reportEvent(event: FakeDrone['events'][number], { lost = false } = {}): void {
    this.events.push(event);
    if (!lost) this.#sendEvent(this.events.length - 1);
  }

  /** The number of the newest event. */
  reportEventSequence(): void {
    this.send('CURRENT_EVENT_SEQUENCE', { sequence: this.events.length - 1, flags: 0 });
  }

  #sendEvent(sequence: number): void {
    const event = this.events[sequence];
    if (!event) return;
    this.send('EVENT', { ...blank('EVENT'), ...event, sequence });
  }

  #sendEvents({ first_sequence, last_sequence }: Messages['REQUEST_EVENT']): void {
    for (let sequence = first_sequence; sequence <= last_sequence; sequence += 1) {
      this.event_requests.push(sequence);
      this.#sendEvent(sequence);
    }
  }

  #explainEvents({ name, fields }: Decoded, from: { readonly sysid: number; readonly compid: number }): void {
    if (name === 'FILE_TRANSFER_PROTOCOL') this.#serveFile(fields.payload, from);
    if (name === 'REQUEST_EVENT') this.#sendEvents(fields);
  }

  #serveFile(
    payload: readonly number[],
    { sysid, compid }: { readonly sysid: number; readonly compid: number },
  ): void {
    const answer = this.files?.answer(payload);
    const target = { target_network: 0, target_system: sysid, target_component: compid };
    if (answer) this.send('FILE_TRANSFER_PROTOCOL', { ...target, payload: answer });
  }

  #nameMetadata(): Answer {
    const uri = 'mftp://etc/extras/component_general.json.xz';
    this.send('COMPONENT_METADATA', { time_boot_ms: 0, file_crc: 0, uri });
    return { result: 0 };
  }

  #listModes(): Answer {
    for (const [index, mode] of this.modes.entries()) {
      const place = { number_modes: this.modes.length, mode_index: index + 1 };
      this.send('AVAILABLE_MODES', { ...blank('AVAILABLE_MODES'), ...mode, ...place });
    }
    return { result: 0 };
  }

  /** Reports what the simulated vehicle does not have; undefined: that has it. */
  #report({ name, fields }: CommandMessage): Answer | undefined {
    const { param1 } = fields;
    this.requests.push(param1);
    if (param1 === 397 && this.files) return this.#nameMetadata();
    if (param1 === 264 && this.takeoff_s !== undefined) return this.#reportFlight(this.takeoff_s);
    if (this.proxied.length > 0 && name === 'COMMAND_LONG' && [259, 269].includes(param1)) {
      for (const camera of this.proxied) this.#answerOf(camera, fields);
      return { result: 0 };
    }
    return param1 === 435 && this.modes.length > 0 ? this.#listModes() : undefined;
  }

  /** What the commands for messages get that its firmware does not have; undefined: it has them. */
  #refuse({ command, param1 }: Messages['COMMAND_LONG']): Answer | undefined {
    const older = older_requests[command];
    if (this.streams_only && older) {
      super.execute(request(512, { param1: idOf(older) }));
      return { result: 0 };
    }
    if (command !== 511 && command !== 512) return undefined;
    if (this.streams_only) return { result: 3 };
    const asked = telemetry_ids.get(param1);
    return asked && this.lacks.has(asked) ? { result: this.options.autopilot === 'px4' ? 4 : 2 } : undefined;
  }

  #stream({ req_stream_id, req_message_rate }: Messages['REQUEST_DATA_STREAM']): void {
    if (!this.streams_only) return;
    for (const name of stream_groups[req_stream_id] ?? [])
      super.execute(request(511, { param1: idOf(name), param2: 1e6 / req_message_rate }));
  }

  /** What has no answer. */
  #obey({ name, fields }: Decoded): void {
    if (name === 'SET_POSITION_TARGET_GLOBAL_INT') this.#flyTo(fields);
    if (name === 'REQUEST_DATA_STREAM') this.#stream(fields);
    if (name === 'SET_MODE') this.#setModeByMessage(fields.custom_mode);
  }

  /** A target without a command, which ArduPilot takes in GUIDED. */
  #flyTo({ lat_int, lon_int, alt }: Messages['SET_POSITION_TARGET_GLOBAL_INT']): void {
    if (this.flight.mode === 'GUIDED')
      this.flight.target = { lat: lat_int / 1e7, lon: lon_int / 1e7, height_m: alt };
  }

  /** Reports when the flight began. The times are since the start, whatever their names say (mavlink#2067). */
  #reportFlight(takeoff_s: number): Answer {
    const takeoff_time_utc = takeoff_s * 1e6;
    const times = { arming_time_utc: takeoff_time_utc, takeoff_time_utc, landing_time: 0, time_boot_ms: 0 };
    this.send('FLIGHT_INFORMATION', { ...times, flight_uuid: 7 });
    return { result: 0 };
  }

  /** Handles SET_MODE, the older message without an answer. */
  #setModeByMessage(custom_mode: number): void {
    const { autopilot } = this.options;
    const mode = mode_names.find(
      (name) => modeNumbers(autopilot, 'copter', name)?.custom_mode === custom_mode,
    );
    if (mode) this.flight.mode = mode;
  }

  /** Answers for information (259) or for one stream or all of them (269), as the autopilot or as a component. */
  #answerOf(camera: FakeCamera, { param1, param2 }: Messages['COMMAND_LONG'], compid?: number): void {
    if (param1 === 259) this.#describeCamera(camera, compid);
    const { streams = [], camera_device_id = 0 } = camera;
    if (param1 !== 269) return;
    for (const [index, stream] of streams.entries()) {
      const size = { framerate: 30, resolution_h: 1920, resolution_v: 1080 };
      const about = { stream_id: index + 1, count: streams.length, flags: 1, encoding: 1, camera_device_id };
      const fields = { ...blank('VIDEO_STREAM_INFORMATION'), ...size, ...about, ...stream };
      if (param2 === 0 || param2 === fields.stream_id) this.send('VIDEO_STREAM_INFORMATION', fields, compid);
    }
  }

  #describeCamera(camera: FakeCamera, compid?: number): void {
    const unknown = { focal_length: Number.NaN, sensor_size_h: Number.NaN, sensor_size_v: Number.NaN };
    const { vendor: vendor_name, model: model_name, lens_id = 0, camera_device_id = 0 } = camera;
    const about = { vendor_name, model_name, lens_id, camera_device_id };
    const { gimbal_device_id = 0 } = camera;
    const fields = { ...blank('CAMERA_INFORMATION'), ...unknown, ...about, gimbal_device_id };
    this.send('CAMERA_INFORMATION', fields, compid);
  }

  override send<K extends keyof Messages>(name: K, fields: Messages[K], from_compid?: number): void {
    if (
      this.withheld.has(name) ||
      this.lacks.has(name as Telemetry) ||
      (name === 'HEARTBEAT' && !this.#isBeatDue())
    )
      return;
    Object.assign(fields, this.fills[name]);
    if (name === 'HEARTBEAT') Object.assign(fields, this.announced);
    if (name === 'GLOBAL_POSITION_INT' && this.counts_microseconds)
      Object.assign(fields, { time_boot_ms: Math.round(performance.now() * 1_000) % 2 ** 32 });
    const { odd_mode } = this;
    const is_odd = odd_mode !== undefined && name === 'HEARTBEAT';
    if (name === 'AUTOPILOT_VERSION') Object.assign(fields, { uid2: [...this.uid2] });
    super.send(name, is_odd ? { ...fields, custom_mode: odd_mode } : fields, from_compid);
  }

  #isBeatDue(): boolean {
    const now_ms = performance.now();
    if (now_ms - this.#beat_ms < this.beat_every_ms) return false;
    this.#beat_ms = now_ms;
    return true;
  }

  protected override signer(): SignFrame | undefined {
    return this.sign;
  }

  protected override transmit(bytes: Uint8Array): void {
    const message = bytes[bytes[0] === stx_v2 ? 7 : 5] ?? 0;
    const sent = (this.#sent[message] ?? 0) + 1;
    this.#sent[message] = sent;
    const isLost = this.lose_every > 0 && sent % this.lose_every === 0;
    if (this.silent || isLost) return;
    this.#later(() => {
      if (this.#sender) this.#sender.sendRaw(bytes);
      else if (!this.#first_gone && this.loses?.() !== true) this.carry(bytes);
      if (this.loses?.() !== true) this.#second?.send(bytes, this.#second_port, this.options.host);
    });
  }

  #later(act: () => void): void {
    if (this.lag_ms === 0) act();
    else setTimeout(act, this.lag_ms);
  }

  protected override receive(bytes: Uint8Array): void {
    if (!this.#arrives) return;
    this.received += 1;
    this.received_bytes += bytes.length;
    if (this.changes_to_mavlink2 && bytes[0] === stx_v2) this.speaks_mavlink1 = false;
    if (this.forwards) this.#forward(bytes);
    const isNoise = this.reads_mavlink1_only && bytes[0] === stx_v2;
    if (!this.silent && !isNoise) this.#later(() => super.receive(bytes));
    this.#listener?.receive(bytes);
  }

  /** Whether a frame that is sent to it now arrives. */
  get #arrives(): boolean {
    const isGone = this.#first_gone && !this.#is_from_second;
    return !this.deaf && !isGone && this.loses?.() !== true;
  }

  #forward(bytes: Uint8Array): void {
    if (this.#is_from_second) this.carry(bytes);
    else this.#second?.send(bytes, this.#second_port, this.options.host);
  }

  protected override handle(
    message: Decoded,
    from: { readonly sysid: number; readonly compid: number },
  ): void {
    const { sysid, compid } = from;
    if (message.name === 'HEARTBEAT' && sysid === pilot_system) this.#pilot_ms = performance.now();
    if (message.name === 'HEARTBEAT') this.beats.push({ sysid, compid, fields: message.fields });
    if (message.name.startsWith('PARAM_REQUEST_')) this.onParameters?.();
    if (isLogMessage(message)) this.logs?.handle(message, this);
    this.#explainEvents(message, from);
    this.#obey(message);
    if (message.name === 'COMMAND_LONG' && message.fields.target_component === camera_component) {
      if (this.camera) this.#answerOf(this.camera, message.fields, camera_component);
      return;
    }
    super.handle(message, from);
  }

  protected override tick(now_ms: number): void {
    const { flight, gcs_failsafe_ms } = this;
    const silence_ms = this.#pilot_ms === undefined ? 0 : now_ms - this.#pilot_ms;
    if (gcs_failsafe_ms !== undefined && silence_ms > gcs_failsafe_ms && flight.armed) {
      this.#pilot_ms = undefined;
      flight.mode = 'RTL';
      this.sendText('GCS Failsafe');
    }
    this.logs?.tick(this);
    super.tick(now_ms);
  }

  protected override execute(message: CommandMessage): Answer | undefined {
    const { fields } = message;
    const execute = (): Answer | undefined => super.execute(message);
    const refused = message.name === 'COMMAND_LONG' ? this.#refuse(message.fields) : undefined;
    if (refused) return refused;
    if (fields.command === 511 || fields.command === 512) return this.#report(message) ?? execute();
    this.commands.push(fields);
    this.#arrived.emit('command', fields);
    return this.react ? this.react(fields, execute) : execute();
  }
}

function request(command: number, fields: Partial<Messages['COMMAND_LONG']>): CommandMessage {
  const target = { target_system: 1, target_component: 1 };
  return { name: 'COMMAND_LONG', fields: { ...blank('COMMAND_LONG'), ...target, command, ...fields } };
}

function idOf(name: keyof Messages): number {
  return [...telemetry_ids].find(([, each]) => each === name)?.[0] ?? Number.NaN;
}
