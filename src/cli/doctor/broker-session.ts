/**
 * Logs in at the broker as the daemon would, and asks what it may do there. Only for when the daemon does not run: brokers
 * that take the user name for the client id, as our samples do, would end the daemon's session for this one.
 *
 * Nothing of the kit is changed at the broker. A session that is already there is the daemon's: it is left as it was, and
 * what waits in it is not acknowledged. The one message that is published is empty, on a channel that no cloud reads, and
 * expires at once.
 */
import { randomUUID } from 'node:crypto';
import {
  MqttClient,
  type IClientOptions,
  type IConnackPacket,
  type Packet,
} from '../../platform/mqtt-client.ts';
import type { BrokerOptions } from '../../config/broker.ts';
import { downFilter, upTopic } from '../../contract/topics.ts';
import { messageOf } from '../../errors.ts';
import { within } from '../../platform/time.ts';
import { openBrokerSocket } from '../../platform/broker-socket.ts';
import { type Finding, fail, ok, plain, warn } from './finding.ts';
import { keys_only, look_as_root, type Places } from './places.ts';

/** As long as the daemon's: a shorter one would throw away what waits in the session if it is the daemon's. */
const session_expiry_s = 86_400;
const answer_ms = 5_000;
const end_ms = 1_000;
const no_listener = 0x10;
/** CONNACK "unsupported protocol version", in MQTT 5 and in 3.1.1. */
const unsupported_version: ReadonlySet<number> = new Set([0x84, 1]);
const bad_credentials: ReadonlySet<number> = new Set([0x86, 0x87, 0x8a, 4, 5]);
const bad_client_id: ReadonlySet<number> = new Set([0x85, 2]);

/** The package brings them. */
const rules = 'rules for mosquitto and EMQX lie in /usr/share/kit-connector/broker';

const not_for_us = new Error('this message is for the daemon');

interface Refusal {
  readonly code: number | undefined;
  readonly reason: string;
}

interface Visit {
  readonly client: MqttClient;
  readonly connack: IConnackPacket;
}

export async function checkBrokerSession(
  kit_id: string,
  broker: BrokerOptions,
  signal: AbortSignal,
  places: Places = keys_only,
): Promise<readonly Finding[]> {
  const { who, visit } = await enter(kit_id, broker, signal);
  if ('reason' in visit) return [refusalFinding(visit, broker, places)];
  const { client, connack } = visit;
  const isV5 = who.version === 5;
  const findings = [ok('broker login', `MQTT ${isV5 ? '5' : '3.1.1'} as ${broker.username}`)];
  try {
    findings.push(await subscribeFinding(client, kit_id));
    findings.push(isV5 ? await publishFinding(client, kit_id) : cannotTell(kit_id));
  } finally {
    await leave(client, connack.sessionPresent ? {} : { properties: { sessionExpiryInterval: 0 } });
  }
  // In MQTT 3.1.1 a session that began here would stay for ever; a clean one takes its place and ends with it.
  if (!isV5 && !connack.sessionPresent) {
    const last = await open(broker, { ...who, clean: true }, signal);
    if ('client' in last) await leave(last.client, {});
  }
  return findings;
}

/** Tries what the daemon would: MQTT 5 and then 3.1.1, a client id of our own and then the kit's. */
async function enter(
  kit_id: string,
  broker: BrokerOptions,
  signal: AbortSignal,
): Promise<{ readonly who: Who; readonly visit: Visit | Refusal }> {
  let who: Who = {
    client_id: `doctor-${randomUUID().slice(0, 8)}`,
    version: broker.protocol === '3.1.1' ? 4 : 5,
  };
  let visit = await open(broker, who, signal);
  if (broker.protocol === 'auto' && isRefused(visit, unsupported_version)) {
    who = { ...who, version: 4 };
    visit = await open(broker, who, signal);
  }
  if (isRefused(visit, bad_client_id)) {
    who = { ...who, client_id: kit_id };
    visit = await open(broker, who, signal);
  }
  return { who, visit };
}

function isRefused(visit: Visit | Refusal, codes: ReadonlySet<number>): boolean {
  return 'reason' in visit && visit.code !== undefined && codes.has(visit.code);
}

interface Who {
  readonly client_id: string;
  readonly version: 4 | 5;
  readonly clean?: boolean;
}

async function open(broker: BrokerOptions, who: Who, signal: AbortSignal): Promise<Visit | Refusal> {
  const client = new MqttClient(() => openBrokerSocket(broker), clientOptions(broker, who));
  // What waits for the kit is not for us: MQTT.js acknowledges nothing that was refused here, and reads on.
  client.handleMessage = (_message, done) => done(not_for_us);
  return new Promise((resolve) => {
    let refusal: Refusal = { code: undefined, reason: 'the broker closed the connection without an answer' };
    const refuse = (): void => {
      client.end(true);
      client.stream?.destroy();
      resolve(refusal);
    };
    const stop = (): void => {
      refusal = { code: undefined, reason: 'no answer in time' };
      refuse();
    };
    signal.addEventListener('abort', stop, { once: true });
    client.on('error', (error) => {
      const code = 'code' in error && typeof error.code === 'number' ? error.code : undefined;
      if (refusal.code === undefined) refusal = { code, reason: plain(messageOf(error)) };
    });
    client.once('close', refuse);
    client.once('connect', (connack) => {
      client.off('close', refuse);
      signal.removeEventListener('abort', stop);
      resolve({ client, connack });
    });
    if (signal.aborted) stop();
    else client.connect();
  });
}

function clientOptions(broker: BrokerOptions, { client_id, version, clean = false }: Who): IClientOptions {
  return {
    manualConnect: true,
    protocolId: 'MQTT',
    protocolVersion: version,
    clientId: client_id,
    clean,
    keepalive: 30,
    connectTimeout: answer_ms,
    reconnectPeriod: 0,
    resubscribe: false,
    username: broker.username,
    ...(broker.password !== undefined && { password: broker.password }),
    ...(version === 5 && { properties: { sessionExpiryInterval: session_expiry_s, receiveMaximum: 1 } }),
  };
}

function refusalFinding({ code, reason }: Refusal, { username }: BrokerOptions, places: Places): Finding {
  const what = 'broker login';
  if (code === undefined) return fail(what, reason, 'see the lines on dns, broker tcp and broker tls');
  if (!bad_credentials.has(code)) {
    return fail(what, `${reason} (0x${code.toString(16)})`, 'ask the operator of the broker');
  }
  if (places.isBlind) return warn(what, `the broker refuses ${username}: ${reason}`, look_as_root);
  return fail(
    what,
    `the broker refuses ${username}: ${reason}`,
    `correct broker.username and the password in ${places.password}, or let the broker know this kit`,
  );
}

/** The daemon subscribes to the same: where the session is its own, nothing changes. */
async function subscribeFinding(client: MqttClient, kit_id: string): Promise<Finding> {
  const filter = downFilter(kit_id);
  const what = 'broker rights down';
  const remedy = `allow the kit to read there: ${rules}`;
  try {
    const granted = await within(
      answer_ms,
      client.subscribeAsync(filter, { qos: 1, ...(client.options.protocolVersion === 5 && { rap: true }) }),
    );
    const code = granted?.[0]?.qos;
    if (code === undefined) return warn(what, `no answer to the subscription to ${filter}`, 'try again');
    return code < 0x80
      ? ok(what, `the subscription to ${filter} is taken`)
      : fail(what, `may not read ${filter} (0x${code.toString(16)})`, remedy);
  } catch (error) {
    return fail(what, `may not read ${filter}: ${plain(messageOf(error))}`, remedy);
  }
}

async function publishFinding(client: MqttClient, kit_id: string): Promise<Finding> {
  const topic = upTopic(kit_id, 'doctor');
  const what = 'broker rights up';
  const code = await within(answer_ms, publish(client, topic));
  if (code === undefined) return warn(what, `no answer to a message to ${topic}`, 'try again');
  if (code < 0x80) {
    const heard = code === no_listener ? '; nobody listens there, as it should be with this channel' : '';
    return ok(what, `may write ${topic}${heard}`);
  }
  return fail(
    what,
    `may not write ${topic} (0x${code.toString(16)})`,
    `allow the kit to write ${upTopic(kit_id, '#')}: ${rules}`,
  );
}

/** Answers the reason code of the PUBACK, which MQTT.js tells only as a packet or as the code of its error. */
async function publish(client: MqttClient, topic: string): Promise<number> {
  return new Promise((resolve) => {
    const onPacket = (packet: Packet): void => {
      if (packet.cmd === 'puback') resolve(packet.reasonCode ?? 0);
    };
    client.on('packetreceive', onPacket);
    client.once('close', () => resolve(0x80));
    client.publish(
      topic,
      '',
      { qos: 1, retain: false, properties: { messageExpiryInterval: 1 } },
      (error) => {
        if (error) resolve('code' in error && typeof error.code === 'number' ? error.code : 0x80);
      },
    );
  });
}

function cannotTell(kit_id: string): Finding {
  return warn(
    'broker rights up',
    `whether ${upTopic(kit_id, '#')} may be written cannot be told: MQTT 3.1.1 has no refusals`,
    'look at the rules of the broker',
  );
}

async function leave(client: MqttClient, how: Parameters<MqttClient['endAsync']>[1]): Promise<void> {
  client.on('error', () => undefined);
  await within(
    end_ms,
    client.endAsync(false, how).catch(() => undefined),
  );
  client.stream.destroy();
}
