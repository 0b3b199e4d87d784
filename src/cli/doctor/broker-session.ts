/**
 * Logs in at the broker like the daemon, and checks the permissions. Only while the daemon is stopped: brokers that use the
 * user name as the client id, like our sample configurations, would end the session of the daemon.
 *
 * The state of the client at the broker does not change. An existing session is that of the daemon: it is kept, and its queued
 * messages are not acknowledged. The only published message is empty, on a topic that nobody subscribes to, and expires after a
 * second.
 */
import { randomUUID, X509Certificate } from 'node:crypto';
import { downFilter, downFilters, trial_channel, upFilter, upTopic } from '../../contract/topics.ts';
import type { BrokerOptions, ProtocolVersion } from '../../mqtt/broker.ts';
import { codeInWords, codeOfMqtt5, reasonOf } from '../../mqtt/codes.ts';
import { ConnectFailed } from '../../mqtt/connect-failed.ts';
import { ProtocolChoice } from '../../mqtt/reconnect.ts';
import { openSession, type Session } from '../../mqtt/session.ts';
import { within } from '../../platform/time.ts';
import { type Finding, fail, mostSevere, ok, plain, warn } from './finding.ts';
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

/** What a client needs the broker for. */
export interface BrokerUse {
  /** Tried where the broker takes no other client id. */
  readonly client_id: string;
  /** What it reads, and what the finding about it is called. */
  readonly filters: readonly string[];
  readonly reads: string;
  /** What it writes: all of `writes_below`, tried with `topic`. */
  readonly topic: string;
  readonly writes_below: string;
  readonly writes: string;
}

/** Of the daemon: the same filters, so that its session does not change. */
export function useOfKit(kit_id: string): BrokerUse {
  return {
    client_id: kit_id,
    filters: downFilters(kit_id),
    reads: 'broker rights down',
    topic: upTopic(kit_id, trial_channel),
    writes_below: upTopic(kit_id, '#'),
    writes: 'broker rights up',
  };
}

/**
 * Of the service. The shared subscription has a group of its own, so that nothing is taken from the replicas; the topic is that of no
 * kit.
 */
export function useOfService(client_id: string, share: string | undefined): BrokerUse {
  const nobody = randomUUID();
  return {
    client_id,
    filters: [share === undefined ? upFilter : `$share/${share}-doctor/${upFilter}`],
    reads: 'broker rights up',
    topic: downFilter(nobody).replace('#', trial_channel),
    writes_below: downFilter('+'),
    writes: 'broker rights down',
  };
}

export async function checkBrokerSession(
  use: BrokerUse,
  broker: BrokerOptions,
  signal: AbortSignal,
  places: Places = keys_only,
): Promise<readonly Finding[]> {
  const { client_id, visit } = await enter(use.client_id, broker, signal);
  if (visit instanceof ConnectFailed) return [refusalFinding(visit, broker, places)];
  const { protocol, session_present } = visit;
  const isV5 = protocol === '5';
  const findings = [ok('broker login', `MQTT ${protocol} as ${nameOf(broker)}`)];
  if (!isV5 && broker.protocol === 'auto') findings.push(ok('broker protocol', texts.mqtt5_unsupported));
  try {
    findings.push(await subscribeFinding(visit, use));
    findings.push(isV5 ? await publishFinding(visit, use) : unknownPermission(use));
    if (mostSevere(findings) === 'fail') findings.push(...certificateNameFindings(use, broker));
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

/** Tries the same as the daemon: MQTT 5 and then 3.1.1; first an own client id, then the one of `use`. */
async function enter(
  own_id: string,
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
    client_id: own_id,
    visit: await open(broker, { client_id: own_id, protocol, session_expiry_s }, signal),
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
  const { password, certificate } = places;
  const remedy =
    certificate === undefined ? texts.correct_login(password) : texts.register_certificate(certificate);
  return fail(what, refusal, remedy);
}

/** Rights that are missing may be those of another name: thin-edge/thin-edge.io 3855. */
function certificateNameFindings({ client_id }: BrokerUse, { cert }: BrokerOptions): readonly Finding[] {
  const name = cert === undefined ? undefined : nameIn(cert);
  if (name === undefined || name === client_id) return [];
  const finding = texts.other_certificate(plain(name), client_id);
  return [warn('client certificate', finding, texts.take_own_certificate(client_id))];
}

/** The common name; undefined when it has none. */
function nameIn(pem: string): string | undefined {
  try {
    return /^CN=(.+)$/mu.exec(new X509Certificate(pem).subject)?.[1];
  } catch {
    return undefined;
  }
}

async function subscribeFinding(session: Session, { filters, reads: what }: BrokerUse): Promise<Finding> {
  const place = filters.join(', ');
  const codes = await session.subscribe(filters, { rap: true }).catch(() => undefined);
  if (codes === undefined) return warn(what, texts.subscription_timed_out(place), 'try again');
  if (codes.size === 0) return ok(what, texts.subscription_accepted(place));
  const refused = Array.from(codes, ([filter, code]) => `${filter}: ${codeInWords(code)}`);
  return fail(what, texts.no_read_permission(refused.join(', ')), texts.allow_read(rules));
}

async function publishFinding(
  session: Session,
  { topic, writes: what, writes_below }: BrokerUse,
): Promise<Finding> {
  const message = { topic, payload: '', retain: false, expiry_s: 1 };
  const puback = await within(answer_ms, session.publishAndWait(message)).catch(() => hung_up);
  if (!puback) return warn(what, texts.message_timed_out(topic), 'try again');
  const { code, reason } = puback;
  if (code < 0x80) {
    const note = code === no_listener ? texts.no_subscriber_expected : '';
    return ok(what, texts.write_permission(topic, note));
  }
  return fail(what, texts.no_write_permission(topic, reason), texts.allow_write(writes_below, rules));
}
/** Some brokers end the connection instead of refusing a message. */
const hung_up = { code: 0x80, reason: codeInWords(0x80) } as const;

function unknownPermission({ writes, writes_below }: BrokerUse): Finding {
  return warn(writes, texts.write_permission_unknown(writes_below), texts.check_access_rules);
}
