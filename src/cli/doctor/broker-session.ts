/**
 * Logs in at the broker like the daemon, and checks the permissions. Only while the daemon is stopped: brokers that use the
 * user name as the client id, like our sample configurations, would end the session of the daemon.
 *
 * The state of the kit at the broker does not change. An existing session is that of the daemon: it is kept, and its queued
 * messages are not acknowledged. The only published message is empty, on a channel without cloud subscribers, and expires
 * after a second.
 */
import { randomUUID } from 'node:crypto';
import { downFilters, upTopic } from '../../contract/topics.ts';
import type { BrokerOptions, ProtocolVersion } from '../../mqtt/broker.ts';
import { codeInWords, codeOfMqtt5, reasonOf } from '../../mqtt/codes.ts';
import { ConnectFailed } from '../../mqtt/connect-failed.ts';
import { ProtocolChoice } from '../../mqtt/reconnect.ts';
import { openSession, type Session } from '../../mqtt/session.ts';
import { within } from '../../platform/time.ts';
import { type Finding, fail, ok, plain, warn } from './finding.ts';
import { keys_only, look_as_root, type Places } from './places.ts';
import { texts } from './texts.ts';

/** As long as that of the daemon: a shorter one would discard the messages queued in the session of the daemon. */
const session_expiry_s = 86_400;
const answer_ms = 5_000;
const no_listener = 0x10;
/** Codes of MQTT 5. */
const bad_client_id = 0x85;
const bad_credentials: ReadonlySet<number> = new Set([0x86, 0x87, 0x8a]);
/** The limit of the daemon; queued messages are not read in any case. */
const packet_bytes_max = 258 * 1024;

/** Installed by the package. */
const rules = texts.access_rules_mosquitto;

export async function checkBrokerSession(
  kit_id: string,
  broker: BrokerOptions,
  signal: AbortSignal,
  places: Places = keys_only,
): Promise<readonly Finding[]> {
  const { client_id, visit } = await enter(kit_id, broker, signal);
  if (visit instanceof ConnectFailed) return [refusalFinding(visit, broker, places)];
  const { protocol, session_present } = visit;
  const isV5 = protocol === '5';
  const findings = [ok('broker login', `MQTT ${protocol} as ${nameOf(broker)}`)];
  if (!isV5 && broker.protocol === 'auto') findings.push(ok('broker protocol', texts.mqtt5_unsupported));
  try {
    findings.push(await subscribeFinding(visit, kit_id));
    findings.push(isV5 ? await publishFinding(visit, kit_id) : unknownPermission(kit_id));
  } finally {
    await visit.end('check finished', session_present ? undefined : 0);
  }
  // In MQTT 3.1.1 a session never expires; a clean session replaces it and ends with its connection.
  if (!isV5 && !session_present) {
    const last = await open(broker, { client_id, protocol, session_expiry_s: 0 }, signal);
    if (!(last instanceof ConnectFailed)) await last.end();
  }
  return findings;
}

/** Tries the same as the daemon: MQTT 5 and then 3.1.1; first an own client id, then that of the kit. */
async function enter(
  kit_id: string,
  broker: BrokerOptions,
  signal: AbortSignal,
): Promise<{ readonly client_id: string; readonly visit: Session | ConnectFailed }> {
  const choice = new ProtocolChoice(broker.protocol, () => performance.now());
  const client_id = `doctor-${randomUUID().slice(0, 8)}`;
  const first = await open(broker, { client_id, protocol: choice.next(), session_expiry_s }, signal);
  let visit = first;
  if (first instanceof ConnectFailed && choice.failed(first)) {
    const again = await open(broker, { client_id, protocol: choice.next(), session_expiry_s }, signal);
    const isAnswer = !(again instanceof ConnectFailed) || again.stage === 'refused';
    if (isAnswer) visit = again;
    else choice.failed(again);
  }
  const isOtherIdDue =
    visit instanceof ConnectFailed && visit.code !== undefined && codeOfMqtt5(visit.code) === bad_client_id;
  if (!isOtherIdDue) return { client_id, visit };
  const protocol = choice.next();
  return {
    client_id: kit_id,
    visit: await open(broker, { client_id: kit_id, protocol, session_expiry_s }, signal),
  };
}

interface Who {
  readonly client_id: string;
  readonly protocol: ProtocolVersion;
  readonly session_expiry_s: number;
}

async function open(broker: BrokerOptions, who: Who, signal: AbortSignal): Promise<Session | ConnectFailed> {
  try {
    return await openSession(
      {
        ...who,
        broker: { ...broker, keepalive_s: 30, connect_timeout_ms: answer_ms },
        receive_maximum: 1,
        packet_bytes_max,
        // Messages queued for the kit are not acknowledged: the daemon receives them.
        onMessage: async () => false,
        onOversize: () => undefined,
      },
      signal,
    );
  } catch (error) {
    if (error instanceof ConnectFailed) return error;
    throw error;
  }
}

function nameOf({ username }: BrokerOptions): string {
  return username ?? texts.certificate_name;
}

function refusalFinding(failure: ConnectFailed, broker: BrokerOptions, places: Places): Finding {
  const what = 'broker login';
  const { code, stage } = failure;
  const reason = plain(failure.message);
  if (stage === 'closed' || stage === 'silent') {
    const remedy = texts.read_log_broker;
    return fail(what, reason, remedy);
  }
  if (code === undefined) return fail(what, reason, texts.see_network_checks);
  if (!bad_credentials.has(codeOfMqtt5(code))) return fail(what, reason, reasonOf(code).remedy);
  const refusal = texts.broker_rejected(nameOf(broker), reason);
  if (places.isBlind) return warn(what, refusal, look_as_root);
  return fail(what, refusal, texts.correct_login(places.password));
}

/** Subscribes to the same filters as the daemon, so that its session does not change. */
async function subscribeFinding(session: Session, kit_id: string): Promise<Finding> {
  const filters = downFilters(kit_id);
  const what = 'broker rights down';
  const place = filters.join(', ');
  const codes = await session.subscribe(filters, { rap: true }).catch(() => undefined);
  if (codes === undefined) return warn(what, texts.subscription_timed_out(place), 'try again');
  if (codes.size === 0) return ok(what, texts.subscription_accepted(place));
  const refused = Array.from(codes, ([filter, code]) => `${filter}: ${codeInWords(code)}`);
  return fail(what, texts.no_read_permission(refused.join(', ')), texts.allow_read(rules));
}

async function publishFinding(session: Session, kit_id: string): Promise<Finding> {
  const topic = upTopic(kit_id, 'doctor');
  const what = 'broker rights up';
  const message = { topic, payload: '', retain: false, expiry_s: 1 };
  const puback = await within(answer_ms, session.publishAndWait(message)).catch(() => hung_up);
  if (!puback) return warn(what, texts.message_timed_out(topic), 'try again');
  const { code, reason } = puback;
  if (code < 0x80) {
    const note = code === no_listener ? texts.no_subscriber_expected : '';
    return ok(what, texts.write_permission(topic, note));
  }
  return fail(what, texts.no_write_permission(topic, reason), texts.allow_write(upTopic(kit_id, '#'), rules));
}
/** Some brokers end the connection instead of refusing a message. */
const hung_up = { code: 0x80, reason: codeInWords(0x80) } as const;

function unknownPermission(kit_id: string): Finding {
  return warn(
    'broker rights up',
    texts.write_permission_unknown(upTopic(kit_id, '#')),
    texts.check_access_rules,
  );
}
