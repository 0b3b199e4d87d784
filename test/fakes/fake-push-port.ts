/** The port for events of a fake vendor camera, which misbehaves on command. */
import { SimPush, type SimClient } from '../../drivers/vendorcam/sim/sim-host.ts';
import { classes, commands, type Frame, frameBytes } from '../../drivers/vendorcam/push/wire.ts';
import { sleep } from '../../src/platform/time.ts';

export type PushMood =
  | 'well'
  /** Answers the login with 401, whatever the password. */
  | 'refuses'
  /** With a status that has no meaning here. */
  | 'is busy'
  | 'refuses the subscription'
  | 'no nonce'
  | 'garbage'
  | 'announces a giant'
  | 'floods'
  | 'drips'
  | 'accepts and is silent'
  /** Answers until the subscription, then nothing more. */
  | 'falls silent'
  /** Answers each answer to its question whether the client is there. */
  | 'echoes'
  | 'cuts off';

const flood = 500;
const drip_ms = 50;

export class FakePushPort extends SimPush {
  mood: PushMood = 'well';
  /** What it received, in order. */
  readonly received: Frame[] = [];
  /** Bytes that it received, to look for passwords. */
  readonly heartbeats: Frame[] = [];
  /** Lists of alarms that were sent. */
  alarms = 0;

  /** Requests with this number. */
  count(command: number): number {
    return this.received.filter((frame) => frame.command === command).length;
  }

  /** Asks each client whether it is there, as some firmware does. */
  heartbeat(): void {
    const frame = { command: commands.heartbeat, id: 0x0102_03fa, status: 0, class: classes.request };
    for (const { socket } of this.clients) socket.write(frameBytes(frame));
  }

  protected override sendAlarms(client: SimClient, xml: string): void {
    this.alarms += 1;
    super.sendAlarms(client, xml);
  }

  protected override answer(client: SimClient, frame: Frame): void {
    this.received.push(frame);
    if (frame.command === commands.heartbeat) this.heartbeats.push(frame);
    const bad = misbehaviour[this.mood];
    if (bad === undefined || !bad(client, frame)) super.answer(client, frame);
  }
}

/** Returns true when the frame was answered in the mood. */
type Misbehave = (client: SimClient, frame: Frame) => boolean;

const misbehaviour: Readonly<Partial<Record<PushMood, Misbehave>>> = {
  refuses: (client, frame) => isLogin(frame) && replyWith(client, frame, 401),
  'is busy': (client, frame) => isLogin(frame) && replyWith(client, frame, 503),
  'refuses the subscription': (client, frame) =>
    frame.command === commands.subscribe && replyWith(client, frame, 400),
  'no nonce': (client, frame) => frame.class === classes.hello && replyWith(client, frame, 200),
  garbage: ({ socket }) => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n') || true,
  'announces a giant': ({ socket }) => {
    const header = frameBytes({ command: commands.login, id: 0, status: 200, class: classes.reply });
    header.writeUInt32LE(0xffff_ffff, 8);
    socket.write(header);
    return true;
  },
  floods: ({ socket }, frame) => {
    if (frame.command !== commands.subscribe) return false;
    const one = frameBytes({ command: commands.alarms, id: 0, status: 200, class: classes.reply });
    socket.write(Buffer.concat(Array.from({ length: flood }, () => one)));
    return true;
  },
  drips: ({ socket }) => {
    void drip(socket);
    return true;
  },
  'accepts and is silent': () => true,
  echoes: (client, frame) => frame.command === commands.heartbeat && replyWith(client, frame, 200),
  'falls silent': (_client, { command }) => command === commands.keep_alive,
  'cuts off': ({ socket }, { command }) => {
    if (command === commands.subscribe) socket.destroy();
    return command === commands.subscribe;
  },
};

function isLogin({ command, class: kind }: Frame): boolean {
  return command === commands.login && kind !== classes.hello;
}

function replyWith({ socket }: SimClient, { command, id }: Frame, status: number): boolean {
  socket.write(frameBytes({ command, id, status, class: classes.reply }));
  return true;
}

async function drip(socket: SimClient['socket']): Promise<void> {
  const over = new AbortController();
  socket.once('close', () => over.abort());
  const bytes = frameBytes({
    command: commands.login,
    id: 0,
    status: 0xdd12,
    class: classes.nonce,
    payload: Buffer.alloc(4_096),
  });
  for (let at = 0; at < bytes.length && !over.signal.aborted; at += 1) {
    socket.write(bytes.subarray(at, at + 1));
    await sleep(drip_ms, over.signal);
  }
}
