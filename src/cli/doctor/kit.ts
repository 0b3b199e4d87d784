/** Findings from the report of the running daemon: uplink, buffer, drivers, assets. Pure. */
import { channelKind } from '../../contract/topics.ts';
import type { QuarantinedMessage, StatusReport } from '../../local/api.ts';
import { clockTime, duration } from '../terminal/shell.ts';
import { balance } from '../status/view.ts';
import { type Finding, fail, ok, plain, warn } from './finding.ts';
import { keys_only, type Places } from './places.ts';

/** `refused`: the messages in quarantine. */
export function kitFindings(
  report: StatusReport,
  refused: readonly QuarantinedMessage[],
  places: Places = keys_only,
): readonly Finding[] {
  return [
    ok('daemon', `kit-connector ${report.version} has been running for ${duration(report.uptime_s)}`),
    uplinkFinding(report.uplink, places),
    ...brokerFindings(report.degraded),
    ...rightsFindings(report, refused),
    ...bufferFindings(report.outbox),
    ...report.drivers.map(driverFinding),
    ...report.assets.filter(({ status }) => status === 'offline').map(assetFinding),
  ];
}

function uplinkFinding(uplink: StatusReport['uplink'], places: Places): Finding {
  const { state, since, last_error, protocol, rtt_ms, broker } = uplink;
  if (state === 'connected') {
    const speed = rtt_ms === null ? '' : `, round trip ${Math.round(rtt_ms)} ms`;
    return ok('broker session', `MQTT ${protocol ?? ''} since ${clockTime(since)}${speed}`);
  }
  if (state === 'stopped') {
    return warn(
      'broker session',
      'no broker is configured',
      'set broker.url (kit-connector setup asks for it)',
    );
  }
  return fail(
    'broker session',
    `not connected to ${broker} since ${clockTime(since)}: ${plain(last_error ?? 'connecting')}`,
    sessionRemedy(last_error ?? '', places),
  );
}

/** Broker warnings of a connected daemon: the part after the last semicolon or colon is the remedy. */
function brokerFindings(degraded: readonly string[]): readonly Finding[] {
  return degraded
    .filter((sentence) => /^(?:another client uses|broker )/u.test(sentence))
    .map((sentence) => {
      const at = Math.max(sentence.lastIndexOf('; '), sentence.lastIndexOf(': '));
      return warn('broker', plain(sentence.slice(0, at)), plain(sentence.slice(at + 2)));
    });
}

/** Matches the messages of brokers and OpenSSL, since they carry no code here. */
function sessionRemedy(reason: string, { password, ca }: Places): string {
  if (/another name|altname|does not match/iu.test(reason))
    return 'set broker.url to a name in the certificate';
  if (/expired|not valid yet|not yet valid/iu.test(reason)) {
    return 'ask the operator of the broker to renew its certificate; check the clock of this kit too';
  }
  if (/certificate|self.signed/iu.test(reason)) {
    return `set ${ca} to the CA certificate of the broker, then restart kit-connector`;
  }
  if (/not authori[sz]ed|bad user ?name|password|banned|identifier/iu.test(reason)) {
    return `correct broker.username and the password in ${password}, or register this kit at the broker; then restart kit-connector`;
  }
  return 'messages are buffered; see dns, broker tcp and broker tls';
}

function rightsFindings(
  { uplink, outbox }: StatusReport,
  refused: readonly QuarantinedMessage[],
): readonly Finding[] {
  const findings: Finding[] = [];
  if (outbox.quarantined > 0) {
    const kinds = new Set(refused.map(({ channel, reason }) => `${channelKind(channel)} (${plain(reason)})`));
    findings.push(
      fail(
        'broker rights',
        `the broker rejected ${outbox.quarantined} messages permanently${kinds.size > 0 ? `: ${[...kinds].join(', ')}` : ''}`,
        'see kit-connector buffer quarantine list; allow these topics at the broker, then kit-connector buffer quarantine retry',
      ),
    );
  }
  if (uplink.unheard.length > 0) {
    findings.push(
      warn(
        'broker listeners',
        `no subscriber for ${uplink.unheard.join(', ')}`,
        'start the services of the cloud, or correct their subscriptions',
      ),
    );
  }
  return findings;
}

function bufferFindings(outbox: StatusReport['outbox']): readonly Finding[] {
  const { state, detail } = outbox.health;
  const disk =
    state === 'ok'
      ? ok('buffer', balance(outbox))
      : fail(
          'buffer',
          state === 'full' ? `the disk is full: ${plain(detail)}` : `disk write failed: ${plain(detail)}`,
          state === 'full'
            ? 'free some space; until then the oldest messages of the lowest priority are dropped'
            : 'check the disk and its mount (dmesg); until then messages are buffered in memory',
        );
  if (outbox.balanced) return [disk];
  return [
    disk,
    fail(
      'buffer counters',
      'accepted and released messages do not match',
      'make a support bundle and report this',
    ),
  ];
}

function driverFinding({ name, driver, state, since, reason }: StatusReport['drivers'][number]): Finding {
  const what = name === driver ? `driver ${name}` : `driver ${name} (${driver})`;
  const why = plain(reason ?? 'unknown reason');
  switch (state) {
    case 'up':
      return ok(what, `up since ${clockTime(since)}`);
    case 'starting':
      return warn(what, 'no data from its devices yet', 'check that they are switched on and connected');
    case 'down':
      return fail(
        what,
        `no device connected since ${clockTime(since)}: ${why}`,
        'check power, cable and address of the device',
      );
    case 'rejected':
      return fail(
        what,
        `rejected: ${why}`,
        'correct its options or password, then systemctl reload kit-connector',
      );
    case 'hung':
      return fail(
        what,
        `does not stop: ${why}`,
        'restart kit-connector, and report this with a support bundle',
      );
    default:
      return warn(what, state, 'restart kit-connector');
  }
}

function assetFinding({ name, key, type, reason, last_seen_at }: StatusReport['assets'][number]): Finding {
  const seen = last_seen_at === null ? '' : `, last seen at ${clockTime(last_seen_at)}`;
  return warn(
    `${type} ${plain(name)} (${key})`,
    `offline: ${plain(reason ?? 'no data received')}${seen}`,
    type === 'drone'
      ? 'check its power, and the connection, antenna and range of the radio'
      : 'check its power, its cable and its network',
  );
}
