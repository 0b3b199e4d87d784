/** Frames to fields: our framer and decoders beside node-mavlink's own pipeline, over the same stream in the same run. */
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import {
  ardupilotmega,
  common,
  createMavLinkStream,
  type MavLinkData,
  type MavLinkDataConstructor,
  type MavLinkPacket,
  MavLinkProtocolV2,
  minimal,
  standard,
} from 'node-mavlink';
import { type FrameSink, StreamFramer } from '../../drivers/mavlink/framer.ts';
import { decode } from '../../drivers/mavlink/messages.ts';
import { type Bench, type BenchContext, type Figure, median } from './figure.ts';

const messages = 100_000;
const chunk_bytes = 1_400;
const ratio_target = '>= 15 x node-mavlink';

/** What an ArduPilot sends to a ground station, and how often in relation to each other: 31 kinds. */
const mix: Readonly<Record<string, number>> = {
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

type LibraryMessage = MavLinkDataConstructor<MavLinkData>;
const library = new Map(
  [minimal, standard, common, ardupilotmega]
    .flatMap(({ REGISTRY }): LibraryMessage[] => Object.values(REGISTRY))
    .map((message) => [message.MSG_NAME, message]),
);

/** Both read the fields of these messages, and of no others. */
const silent: FrameSink['tally'] = {
  skipped: () => undefined,
  badChecksum: () => undefined,
  unknownId: () => undefined,
};

async function run({ long, say, calm }: BenchContext): Promise<readonly Figure[]> {
  const stream = makeStream();
  const chunks = inChunks(stream);
  say(
    `${messages} messages of ${(stream.length / messages).toFixed(1)} bytes, ${Object.keys(mix).length} kinds`,
  );
  const used = usedIds(stream);
  await calm();
  const rounds = Array.from({ length: long ? 15 : 5 });
  const ours: number[] = [];
  const theirs: number[] = [];
  for (const _ of rounds) {
    ours.push(await rate(async () => oursOver(chunks)));
    theirs.push(await rate(async () => theirsOver(chunks, used)));
  }
  return [
    {
      figure: 'messages_per_s',
      value: median(ours),
      unit: 'messages per second of processor time',
      against: 'node-mavlink, createMavLinkStream and data()',
      against_value: median(theirs),
      target: ratio_target,
    },
  ];
}

/** Messages a second of processor time, all threads together. */
async function rate(work: () => Promise<number>): Promise<number> {
  const before = process.cpuUsage();
  const found = await work();
  const { user, system } = process.cpuUsage(before);
  if (found !== messages) throw new Error(`${found} of ${messages} messages were found`);
  return messages / ((user + system) / 1e6);
}

async function oursOver(chunks: readonly Uint8Array[]): Promise<number> {
  let found = 0;
  const framer = new StreamFramer({
    tally: silent,
    frame: (frame) => {
      decode(frame);
      found++;
    },
  });
  for (const chunk of chunks) framer.push(chunk);
  return found;
}

async function theirsOver(
  chunks: readonly Uint8Array[],
  used: ReadonlyMap<number, LibraryMessage>,
): Promise<number> {
  let found = 0;
  const source = new PassThrough({ highWaterMark: 2 ** 26 });
  const reader = createMavLinkStream(source);
  reader.on('data', ({ header, protocol, payload }: MavLinkPacket) => {
    const Message = used.get(header.msgid);
    if (Message) protocol.data(payload, Message);
    found++;
  });
  for (const chunk of chunks) source.write(chunk);
  source.end();
  await once(reader, 'end');
  return found;
}

function makeStream(): Buffer {
  const random = lehmer();
  const deck = Object.entries(mix).flatMap(([name, share]) => Array<string>(share).fill(name));
  const protocol = new MavLinkProtocolV2(1, 1);
  const frames = Array.from({ length: messages }, (_, index) => {
    const name = deck[(index * 7_919) % deck.length] ?? '';
    const Message = library.get(name);
    if (Message === undefined) throw new Error(`node-mavlink does not define ${name}`);
    return protocol.serialize(filled(Message, random), index & 0xff);
  });
  return Buffer.concat(frames);
}

/** A message whose fields are plausible in size: extensions and the ends of arrays are zero, as autopilots leave them. */
function filled(Message: LibraryMessage, random: () => number): MavLinkData {
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

function usedIds(stream: Buffer): ReadonlyMap<number, LibraryMessage> {
  const used = new Map<number, LibraryMessage>();
  const framer = new StreamFramer({
    tally: silent,
    frame: (frame) => {
      const Message = library.get(decode(frame)?.name ?? '');
      if (Message) used.set(frame.msgid, Message);
    },
  });
  framer.push(stream);
  return used;
}

function inChunks(stream: Buffer): readonly Uint8Array[] {
  const count = Math.ceil(stream.length / chunk_bytes);
  return Array.from({ length: count }, (_, index) =>
    stream.subarray(index * chunk_bytes, (index + 1) * chunk_bytes),
  );
}

/** The same numbers in every run. */
function lehmer(): () => number {
  let state = 1;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

export const bench: Bench = { name: 'mavlink-decode', run };
