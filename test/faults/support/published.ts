/** Kits of a campaign against the service: they publish at a steady pace, leave numbers out, repeat themselves, and note what was said to them. */
import { connect, type Socket } from 'node:net';
import { packBatch } from '../../../src/contract/batch/pack.ts';
import { writeEnvelope } from '../../../src/contract/envelope.ts';
import { assetId } from '../../../src/contract/identity.ts';
import type { JsonObject } from '../../../src/contract/json.ts';
import { cloudAck } from '../../../src/contract/tasks.ts';
import { channels, downFilter, parseDown, upTopic } from '../../../src/contract/topics.ts';
import { every, sleep, within } from '../../../src/platform/time.ts';
import { samples } from '../../support/contract-samples.ts';
import {
  connectPacket,
  packetReader,
  packetTypes,
  pubackPacket,
  publishPacket,
  readPublish,
  subscribePacket,
} from '../../support/brokers/raw-mqtt.ts';

/** The epoch of all kits. */
export const epoch = 17;
const tick_ms = 20;
const packet_ids = 60_000;
/** Not acknowledged by the broker; beyond it the kit waits. */
const under_way_max = 500;
const batch_items = 25;
/** Every so many-th number is left out, and every so many-th message comes again. */
const every_gap = 7;
const every_repeat = 11;
/** Every so many-th message begins an alarm, or ends the one before. The service keeps 1,000 closed ones of a kit. */
const every_alarm = 60;
const alarms_max = 900;
/** The feed of these alarms. */
export const alarm_feed = 'relay_fault';

/** What is in a message, as far as the account needs it. */
interface Item {
  readonly channel: string;
  readonly seq: number;
  readonly data: JsonObject;
}

/** Ports of a broker's nodes, tried in turn after a connection has ended, and a login. */
export interface Nodes {
  readonly ports: readonly number[];
  readonly username: string;
  readonly password: string;
}

/** What the broker has not acknowledged; it is sent again on the next connection. */
interface UnderWay {
  readonly seqs: readonly number[];
  readonly packet: Buffer;
}

const reconnect_ms = 250;
/** A node that dies may not answer a connection. */
const connack_ms = 5_000;

export class PublishingKit {
  readonly kit_id: string;
  /** Numbers of messages that the broker has acknowledged. */
  readonly published = new Set<number>();
  /** Numbers that `down/ack` has named, and that were published: a range may hold no other. */
  readonly named = new Set<number>();
  /** Numbers that `down/ack` has named and that were never sent. */
  readonly invented = new Set<number>();
  /** Newest number of each channel. */
  readonly newest = new Map<string, Item>();
  #socket: Socket | undefined;
  readonly #nodes: Nodes | undefined;
  #at = 0;
  #hasLeft = false;
  /** Ids of dispatched tasks. */
  readonly tasks: string[] = [];
  readonly #sent = new Set<number>();
  readonly #under_way = new Map<number, UnderWay>();
  /** Names of alarms that began, and whether they have ended since. */
  readonly alarms = new Map<string, 'begun' | 'ended'>();
  /** Monotonic times at which they began. */
  readonly begun_ms = new Map<string, number>();
  #seq = 0;
  #packet = 0;
  #last: Buffer | undefined;

  private constructor(kit_id: string, nodes: Nodes | undefined) {
    this.kit_id = kit_id;
    this.#nodes = nodes;
  }

  /** Connects to one port, or to the nodes of a cluster, with a session that they keep, and reconnects to those. */
  static async connect(kit_id: string, to: number | Nodes): Promise<PublishingKit> {
    const kit = new PublishingKit(kit_id, typeof to === 'number' ? undefined : to);
    await kit.#open(typeof to === 'number' ? to : (to.ports[0] ?? 0));
    kit.#send(channels.state, JSON.stringify(samples['kitState']), []);
    return kit;
  }

  async #open(port: number): Promise<void> {
    const { username, password } = this.#nodes ?? {};
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    let refusal: string | undefined;
    const connected = Promise.withResolvers<undefined>();
    const read = packetReader((packet) => {
      if (packet.type === packetTypes.connack) {
        const code = packet.body.readUInt8(1);
        if (code === 0) connected.resolve(undefined);
        else refusal = `CONNACK ${code}`;
      }
      if (packet.type === packetTypes.puback) this.#acknowledged(packet.body.readUInt16BE(0));
      if (packet.type === packetTypes.publish) this.#receive(readPublish(packet));
    });
    socket.on('data', read);
    socket.on('error', (error) => (refusal ??= error.message));
    socket.on('close', () => {
      const reason = refusal ?? 'closed by the broker';
      connected.reject(new Error(reason));
      if (this.#nodes && !this.#hasLeft) void this.#reopen();
    });
    const login = { username, password };
    socket.once('connect', () =>
      socket.write(connectPacket({ client_id: this.kit_id, clean: this.#nodes === undefined, ...login })),
    );
    connected.promise.catch(() => undefined);
    if (
      (await within(
        connack_ms,
        connected.promise.then(() => true),
      )) === undefined
    ) {
      refusal ??= 'no CONNACK';
      socket.destroy();
      await connected.promise;
    }
    this.#socket = socket;
    socket.write(subscribePacket(packet_ids + 1, [downFilter(this.kit_id)]));
    for (const { packet } of this.#under_way.values()) socket.write(packet);
  }

  async #reopen(): Promise<void> {
    this.#socket = undefined;
    await sleep(reconnect_ms, new AbortController().signal);
    const ports = this.#nodes?.ports ?? [];
    this.#at += 1;
    // A failure closes the socket, which tries the next one.
    if (!this.#hasLeft) await this.#open(ports[this.#at % ports.length] ?? 0).catch(() => undefined);
  }

  /** So many messages a second, until the signal aborts; none while `waits`. */
  publish(per_second: number, signal: AbortSignal, waits = (): boolean => false): void {
    const begin_ms = performance.now();
    let sent = 0;
    every(tick_ms, signal, () => {
      const due = ((performance.now() - begin_ms) / 1_000) * per_second;
      for (; sent < due && this.#under_way.size < under_way_max && !waits(); sent += 1)
        this.#publishNext(sent);
      sent = Math.max(sent, Math.floor(due));
    });
  }

  get isQuiet(): boolean {
    return this.#under_way.size === 0;
  }

  /** Announces an asset and its commands. */
  announce(asset_id: string, announcement: JsonObject, commands: JsonObject): void {
    const items = [
      [channels.asset(asset_id), announcement],
      [channels.commands(asset_id), commands],
    ] as const;
    for (const [channel, data] of items) {
      this.#seq += 1;
      this.#publishItem({ channel, seq: this.#seq, data });
    }
  }

  /** Ends its session at the broker. */
  async forget(): Promise<void> {
    this.leave();
    const { ports, username, password } = this.#nodes ?? { ports: [] };
    const socket = connect({ port: ports[0] ?? 0, host: '127.0.0.1' });
    const done = Promise.withResolvers<undefined>();
    socket.on('data', () => done.resolve(undefined));
    socket.write(connectPacket({ client_id: this.kit_id, clean: true, username, password }));
    await done.promise;
    socket.end(Buffer.from([0xe0, 0]));
  }

  leave(): void {
    this.#hasLeft = true;
    this.#socket?.destroy();
  }

  #publishNext(n: number): void {
    if (n % every_repeat === 0 && this.#last) this.#socket?.write(this.#last);
    if (n % 20 === 0) this.#publishBatch();
    else this.#publishItem(n % every_alarm === 1 ? this.#nextAlarm() : this.#next(n));
  }

  /** The beginning of an alarm with a name of its own, or its end. */
  #nextAlarm(): Item {
    const [last, state] = [...this.alarms].at(-1) ?? [];
    const isEnd = last !== undefined && state === 'begun';
    if (!isEnd && this.alarms.size >= alarms_max) return this.#next(1);
    // Names that differ in digits only would be one thing.
    const name = isEnd
      ? last
      : String(this.alarms.size).replaceAll(/\d/gu, (digit) => 'abcdefghij'.charAt(Number(digit)));
    this.alarms.set(name, isEnd ? 'ended' : 'begun');
    if (!isEnd) this.begun_ms.set(name, performance.now());
    const channel = channels.event(assetId(this.kit_id, 'asset-0'), alarm_feed);
    return { channel, seq: this.#nextSeq(), data: { detected: !isEnd, name } };
  }

  #nextSeq(): number {
    this.#seq += this.#seq % every_gap === 0 ? 2 : 1;
    return this.#seq;
  }

  /** A feed, an alarm, a step of a task or telemetry, with the next number. */
  #next(n: number): Item {
    const seq = this.#nextSeq();
    const asset_id = assetId(this.kit_id, `asset-${n % 5}`);
    const item = ((): Omit<Item, 'seq'> => {
      switch (n % 4) {
        case 0:
          return { channel: channels.event(asset_id, 'motion'), data: { detected: true, n: seq } };
        case 1: {
          const task_id = assetId(this.kit_id, `task-${Math.floor(n / 40)}`);
          const report = {
            task_id,
            asset_id,
            command_name: 'arm',
            status: 'running',
            revision: seq,
            result: {},
          };
          return { channel: channels.task(task_id), data: report };
        }
        case 2:
          return { channel: channels.telemetry, data: { battery: seq % 100 } };
        default:
          return {
            channel: channels.feed(asset_id, 'gps'),
            data: { lat: 47.1, lon: 8.5, alt_m: null, n: seq },
          };
      }
    })();
    return { ...item, seq };
  }

  #publishItem({ channel, seq, data }: Item): void {
    this.#note({ channel, seq, data });
    this.#send(channel, JSON.stringify(data), [seq], seq);
  }

  #publishBatch(): void {
    const items = Array.from({ length: batch_items }, (_, at) => this.#next(at));
    for (const item of items) this.#note(item);
    const packed = packBatch(
      items.map(({ channel, seq, data }) => ({
        channel,
        seq,
        epoch,
        time_ms: Date.now(),
        data: JSON.stringify(data),
      })),
      { historical: true },
    );
    this.#write(
      channels.batch,
      packed,
      items.map(({ seq }) => seq),
    );
  }

  #note(item: Item): void {
    this.#sent.add(item.seq);
    this.newest.set(item.channel, item);
  }

  #send(channel: string, data: string, seqs: readonly number[], seq = 1): void {
    this.#write(channel, writeEnvelope({ epoch, seq, time_ms: Date.now() }, data), seqs);
  }

  #write(channel: string, payload: string | Uint8Array, seqs: readonly number[]): void {
    this.#packet = (this.#packet % packet_ids) + 1;
    const packet = publishPacket(this.#packet, upTopic(this.kit_id, channel), payload);
    this.#under_way.set(this.#packet, { seqs, packet });
    this.#last = packet;
    this.#socket?.write(packet);
  }

  #acknowledged(packet_id: number): void {
    for (const seq of this.#under_way.get(packet_id)?.seqs ?? []) this.published.add(seq);
    this.#under_way.delete(packet_id);
  }

  #receive({ topic, payload, packet_id }: ReturnType<typeof readPublish>): void {
    if (packet_id !== undefined) this.#socket?.write(pubackPacket(packet_id));
    const down = parseDown(this.kit_id, topic);
    if (down?.kind === 'task') this.tasks.push(down.task_id);
    if (down?.kind !== 'ack') return;
    const ack = cloudAck.parse(JSON.parse(payload.toString()));
    for (const [first, last] of ack.ranges) {
      for (let seq = first; seq <= last; seq += 1)
        (this.#sent.has(seq) ? this.named : this.invented).add(seq);
    }
  }
}
