/**
 * A broker as brokers are: MQTT 5 and 3.1.1, sessions, retained messages, QoS 1, wills with their delay, access rules,
 * limits, takeovers. It can be killed with all it knows, or with all but its persisted state.
 */
import {
  generate,
  type IConnectPacket,
  type IPublishPacket,
  type ISubscribePacket,
  type IUnsubscribePacket,
  type Packet,
  parser,
} from 'mqtt-packet';
import { BrokerSession, type Message, type Subscription, topicMatches } from './broker-session.ts';
import type { Acceptor, Connection } from './network.ts';
import type { Handle, Machine, Proc, World } from './scheduler.ts';

/** What faults may set. */
export interface BrokerRules {
  v5: boolean;
  receive_maximum: number;
  packet_bytes_max: number;
  /** CONNACK code for everybody; 0: welcome. */
  connack: number;
  /** So long the PUBACK of a publication waits, each its own time. */
  ack_ms: (client_id: string) => number;
  /** PUBACK code for this publication; 0: taken. */
  refuse: (client_id: string, topic: string) => number;
  /** Hangs up instead of answering this publication. */
  hangUp: (client_id: string, topic: string, bytes: number) => boolean;
  /** The network resets the connection before this publication is read. */
  cut: (client_id: string) => boolean;
  /** Where a message goes among those that wait for a client; left out: behind. */
  place: ((client_id: string) => number | undefined) | undefined;
}

export interface BrokerEvents {
  /** A publication was taken. */
  readonly taken: (client_id: string, message: Message) => void;
  /** It died with these, or they were too old when their turn came. */
  readonly lost: (messages: readonly Message[]) => void;
  readonly trace: (facts: object, text: string) => void;
  /** A client broke a rule of MQTT. */
  readonly broken: (client_id: string, rule: string) => void;
}

/** What survives a kill with persistence. */
export interface Snapshot {
  readonly retained: ReadonlyMap<string, Message>;
  readonly sessions: readonly BrokerSession[];
}

interface Client {
  readonly connection: Connection;
  readonly session: BrokerSession;
  readonly version: 4 | 5;
  /** It must be heard within this time; 0: no matter. */
  readonly patience_ms: number;
  silence: Handle | undefined;
  open: boolean;
  /** As its CONNACK said. */
  readonly receive_maximum: number;
  /** Its publications without a PUBACK. */
  unanswered: number;
}

const not_authorised = 0x87;
const quota_exceeded = 0x97;
const taken_over = 0x8e;
const nobody_listens = 0x10;
const forever = Number.POSITIVE_INFINITY;

export class Broker implements Acceptor {
  proc_now: Proc | undefined;
  readonly rules: BrokerRules = {
    v5: true,
    receive_maximum: 1_000,
    packet_bytes_max: 0,
    connack: 0,
    ack_ms: () => 0,
    refuse: () => 0,
    hangUp: () => false,
    cut: () => false,
    place: undefined,
  };
  retained = new Map<string, Message>();
  #sessions = new Map<string, BrokerSession>();
  readonly #clients = new Map<BrokerSession, Client>();
  readonly #world: World;
  readonly #machine: Machine;
  readonly #events: BrokerEvents;
  #starts = 0;
  /** What the last process had written to its disk. */
  #kept: Snapshot | undefined;

  constructor(world: World, machine: Machine, events: BrokerEvents) {
    this.#world = world;
    this.#machine = machine;
    this.#events = events;
    this.start();
  }

  proc(): Proc | undefined {
    return this.proc_now;
  }

  session(client_id: string): BrokerSession | undefined {
    return this.#sessions.get(client_id);
  }

  isConnected(client_id: string): boolean {
    return this.#sessions.get(client_id)?.attached !== undefined;
  }

  /** Starts with what is on its disk. */
  start(): void {
    const from = this.#kept;
    this.#starts += 1;
    this.proc_now = this.#world.spawn(`broker#${this.#starts}`, this.#machine);
    this.retained = new Map(from?.retained);
    this.#sessions = new Map(from?.sessions.map((session) => [session.client_id, session]));
  }

  #snapshot(): Snapshot {
    return { retained: new Map(this.retained), sessions: [...this.#sessions.values()] };
  }

  /** Ends the process. `keeps`: what it held for its clients is on its disk; else it is lost. */
  kill(keeps: boolean): void {
    if (!this.proc_now) return;
    this.#kept = keeps ? this.#snapshot() : undefined;
    this.proc_now.alive = false;
    this.proc_now = undefined;
    for (const session of this.#sessions.values()) session.attached = undefined;
    this.#clients.clear();
    if (!keeps) this.#events.lost([...this.#sessions.values()].flatMap(({ held }) => held));
  }

  /** Publishes as somebody who is no client of the story. */
  publish(topic: string, payload: string | Buffer, retain: boolean): boolean {
    if (!this.proc_now) return false;
    const bytes = Buffer.from(payload);
    this.#route({ topic, payload: bytes, retain, expires_ms: forever, taken_ms: this.#world.now_ms });
    return true;
  }

  accept(connection: Connection): ReturnType<Acceptor['accept']> {
    const read = parser();
    let client: Client | undefined;
    read.on('packet', (packet: Packet) => {
      if (packet.cmd === 'connect') client = this.#connect(connection, packet);
      else if (client?.open) this.#handle(client, packet);
    });
    read.on('error', () => connection.close());
    return {
      received: (bytes) => void read.parse(bytes),
      closed: () => {
        if (client) this.#gone(client, 'closed');
      },
    };
  }

  #connect(connection: Connection, packet: IConnectPacket): Client | undefined {
    const version = packet.protocolVersion === 5 ? 5 : 4;
    const refused = version === 5 && !this.rules.v5 ? 0x84 : this.rules.connack;
    if (refused > 0) {
      send(connection, version, connack(version, false, refused));
      connection.close();
      return undefined;
    }
    const { session, isKnown } = this.#sessionFor(packet);
    const receive_maximum = packet.properties?.receiveMaximum ?? 65_535;
    const client: Client = {
      connection,
      session,
      version,
      patience_ms: (packet.keepalive ?? 0) * 1_500,
      silence: undefined,
      open: true,
      receive_maximum: version === 5 ? this.rules.receive_maximum : forever,
      unanswered: 0,
    };
    session.will = packet.will;
    session.ends_ms = forever;
    this.#clients.set(session, client);
    const limits = version === 5 ? this.#limits() : {};
    send(connection, version, { ...connack(version, isKnown, 0), ...limits });
    session.attached = {
      version,
      receive_maximum,
      publish: (publish) => send(connection, version, publish),
    };
    this.#watch(client);
    this.#events.trace({ client_id: packet.clientId, version, isKnown }, 'a client connected');
    session.resume(this.#world.now_ms);
    return client;
  }

  #sessionFor(packet: IConnectPacket): { readonly session: BrokerSession; readonly isKnown: boolean } {
    const known = this.#sessions.get(packet.clientId);
    const before = known && this.#clients.get(known);
    if (before) this.#takeOver(before, packet);
    const isAlive = known !== undefined && known.ends_ms > this.#world.now_ms && !packet.clean;
    const session = isAlive ? known : new BrokerSession(packet.clientId, this.#events.lost);
    if (!isAlive) this.#sessions.set(packet.clientId, session);
    if (packet.clean) session.ends_ms = this.#world.now_ms;
    return { session, isKnown: isAlive };
  }

  #takeOver(client: Client, packet: IConnectPacket): void {
    const delay_s = client.session.will?.properties?.willDelayInterval ?? 0;
    if (client.version === 5) send(client.connection, 5, { cmd: 'disconnect', reasonCode: taken_over });
    if (delay_s === 0 || packet.clean) this.#publishWill(client.session);
    client.session.will = undefined;
    client.connection.close();
    this.#gone(client, 'taken over');
  }

  #limits() {
    const { receive_maximum, packet_bytes_max } = this.rules;
    return {
      properties: {
        receiveMaximum: receive_maximum,
        ...(packet_bytes_max > 0 && { maximumPacketSize: packet_bytes_max }),
      },
    };
  }

  /** A client that says nothing for one and a half times its keepalive is gone. */
  #watch(client: Client): void {
    if (client.silence) client.silence.cancelled = true;
    if (client.patience_ms <= 0 || !this.proc_now) return;
    client.silence = this.#world.after(client.patience_ms, this.proc_now, () => {
      client.connection.close();
      this.#gone(client, 'silent');
    });
  }

  #handle(client: Client, packet: Packet): void {
    const { session, connection, version } = client;
    this.#watch(client);
    if (packet.cmd === 'publish') this.#published(client, packet);
    else if (packet.cmd === 'puback') session.acknowledged(packet.messageId ?? 0, this.#world.now_ms);
    else if (packet.cmd === 'subscribe') this.#subscribe(client, packet);
    else if (packet.cmd === 'unsubscribe') this.#unsubscribe(client, packet);
    else if (packet.cmd === 'pingreq') send(connection, version, { cmd: 'pingresp' });
    else if (packet.cmd === 'disconnect') {
      if (packet.reasonCode !== 4) session.will = undefined;
      connection.close();
      this.#gone(client, 'disconnected');
    }
  }

  #published(client: Client, packet: IPublishPacket): void {
    const { session, connection, version } = client;
    const message = this.#messageOf(packet);
    const { topic, retain } = message;
    if (this.#endsInstead(client, message)) return;
    const reasonCode = this.rules.refuse(session.client_id, topic) || this.#take(session, message);
    if (version === 4 && reasonCode === quota_exceeded) {
      connection.close();
      return this.#gone(client, 'sent too much');
    }
    const is_in_vain = reasonCode >= 0x80 || (reasonCode > 0 && !retain);
    // In 3.1.1 a refusal cannot be told: brokers acknowledge and forget.
    if (version === 4 && is_in_vain) this.#events.lost([message]);
    if (packet.qos !== 1) return;
    const puback = { cmd: 'puback', messageId: packet.messageId ?? 0 } as const;
    this.#answer(client, () =>
      send(connection, version, { ...puback, ...(version === 5 && { reasonCode }) }),
    );
  }

  /** Counts what the client may have in flight (MQTT 5 section 3.3.4) until it is answered, perhaps behind later ones. */
  #answer(client: Client, answer: () => void): void {
    const { session, receive_maximum } = client;
    client.unanswered += 1;
    if (client.unanswered > receive_maximum)
      this.#events.broken(session.client_id, `has more than ${receive_maximum} messages in flight`);
    const answered = (): void => {
      client.unanswered -= 1;
      if (client.open) answer();
    };
    const ack_ms = this.rules.ack_ms(session.client_id);
    if (ack_ms > 0 && this.proc_now) this.#world.after(ack_ms, this.proc_now, answered);
    else answered();
  }

  /** The connection ends, and nobody says why. */
  #endsInstead(client: Client, { topic, payload }: Message): boolean {
    const { session, connection } = client;
    if (this.rules.cut(session.client_id)) {
      connection.reset();
      return true;
    }
    if (!this.rules.hangUp(session.client_id, topic, payload.length)) return false;
    connection.close();
    this.#gone(client, 'hung up on a message');
    return true;
  }

  #messageOf({ topic, payload, retain, properties }: IPublishPacket): Message {
    const { now_ms } = this.#world;
    const expiry_s = properties?.messageExpiryInterval;
    const expires_ms = expiry_s === undefined ? forever : now_ms + expiry_s * 1_000;
    return { topic, payload: Buffer.from(payload), retain, expires_ms, taken_ms: now_ms };
  }

  /** Answers the code for its PUBACK. */
  #take(session: BrokerSession, message: Message): number {
    const heard = this.#route(message);
    this.#events.taken(session.client_id, message);
    return heard ? 0 : nobody_listens;
  }

  /** Answers whether anybody has a session for it. */
  #route(message: Message): boolean {
    if (message.retain) {
      if (message.payload.length > 0) this.retained.set(message.topic, message);
      else this.retained.delete(message.topic);
    }
    let heard = false;
    for (const session of this.#sessions.values()) {
      const subscription = session.matches(message.topic);
      if (!subscription || session.ends_ms <= this.#world.now_ms) continue;
      heard = true;
      this.#deliver(session, message, subscription);
    }
    return heard;
  }

  #deliver(session: BrokerSession, message: Message, { rap }: Subscription): void {
    const place = this.rules.place?.(session.client_id);
    session.enqueue({ ...message, retain: rap && message.retain }, this.#world.now_ms, place);
  }

  #subscribe({ session, connection, version }: Client, packet: ISubscribePacket): void {
    send(connection, version, {
      cmd: 'suback',
      messageId: packet.messageId ?? 0,
      granted: packet.subscriptions.map(() => 1),
      ...(version === 5 && { reasonCode: 0 }),
    });
    for (const { topic, rap } of packet.subscriptions) {
      session.subscriptions.set(topic, { filter: topic, rap: rap === true });
      for (const message of this.retained.values()) {
        if (topicMatches(topic, message.topic)) session.enqueue(message, this.#world.now_ms);
      }
    }
  }

  #unsubscribe({ session, connection, version }: Client, packet: IUnsubscribePacket): void {
    for (const filter of packet.unsubscriptions) session.subscriptions.delete(filter);
    send(connection, version, {
      cmd: 'unsuback',
      messageId: packet.messageId ?? 0,
      granted: packet.unsubscriptions.map(() => 0),
    });
  }

  #gone(client: Client, why: string): void {
    if (!client.open) return;
    client.open = false;
    const { session } = client;
    if (client.silence) client.silence.cancelled = true;
    if (this.#clients.get(session) !== client) return;
    this.#clients.delete(session);
    session.attached = undefined;
    this.#events.trace({ client_id: session.client_id, why }, 'a client is gone');
    const { will } = session;
    const delay_ms = client.version === 5 ? (will?.properties?.willDelayInterval ?? 0) * 1_000 : 0;
    if (!will || !this.proc_now) return;
    this.#world.after(delay_ms, this.proc_now, () => {
      if (!session.attached && session.will === will) this.#publishWill(session);
    });
  }

  #publishWill(session: BrokerSession): void {
    const { will } = session;
    session.will = undefined;
    if (!will || this.rules.refuse(session.client_id, will.topic) === not_authorised) return;
    this.#route({
      topic: will.topic,
      payload: Buffer.from(will.payload),
      retain: will.retain === true,
      expires_ms: forever,
      taken_ms: this.#world.now_ms,
    });
  }
}

function connack(version: 4 | 5, sessionPresent: boolean, code: number): Packet {
  return version === 5
    ? { cmd: 'connack', sessionPresent, reasonCode: code }
    : { cmd: 'connack', sessionPresent, returnCode: code > 5 ? 5 : code };
}

function send(connection: Connection, version: 4 | 5, packet: Packet): void {
  connection.send(generate(packet, { protocolVersion: version }));
}
