/** What the running daemon says of itself, as findings: uplink, buffer, drivers, assets. Pure. */
import { channelKind } from '../../contract/topics.ts';
import type { QuarantinedMessage, StatusReport } from '../../local/api.ts';
import { clockTime, duration } from '../shell.ts';
import { balance } from '../status-view.ts';
import { type Finding, fail, ok, plain, warn } from './finding.ts';
import { keys_only, type Places } from './places.ts';

/** `refused`: what the quarantine holds. */
export function kitFindings(
  report: StatusReport,
  refused: readonly QuarantinedMessage[],
  places: Places = keys_only,
): readonly Finding[] {
  return [
    ok('daemon', `kit-connector ${report.version} runs since ${duration(report.uptime_s)}`),
    uplinkFinding(report.uplink, places),
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
      'write its address to broker.url (kit-connector setup asks for it)',
    );
  }
  return fail(
    'broker session',
    `not connected to ${broker} since ${clockTime(since)}: ${plain(last_error ?? 'the first attempt is under way')}`,
    sessionRemedy(last_error ?? '', places),
  );
}

/** The broker's and OpenSSL's words, not ours: they are all that is known. */
function sessionRemedy(reason: string, { password, ca }: Places): string {
  if (/altname|does not match/iu.test(reason))
    return 'write the name that stands in the certificate into broker.url';
  if (/expired|not yet valid/iu.test(reason)) {
    return 'let the operator of the broker renew its certificate; check the clock of this kit too';
  }
  if (/certificate|self.signed/iu.test(reason)) {
    return `give the certificate of the broker's authority as ${ca}, then restart kit-connector`;
  }
  if (/not authori[sz]ed|bad user ?name|password|banned|identifier/iu.test(reason)) {
    return `correct broker.username and the password in ${password}, or let the broker know this kit; then restart kit-connector`;
  }
  return 'messages are kept; see the lines on dns, broker tcp and broker tls';
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
        `${outbox.quarantined} messages were refused for good${kinds.size > 0 ? `: ${[...kinds].join(', ')}` : ''}`,
        'see kit-connector buffer quarantine list; let the broker allow these topics, then kit-connector buffer quarantine retry',
      ),
    );
  }
  if (uplink.unheard.length > 0) {
    findings.push(
      warn(
        'broker listeners',
        `nobody listens to ${uplink.unheard.join(', ')}`,
        "start the cloud's services, or correct their subscriptions",
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
          state === 'full' ? `the disk is full: ${plain(detail)}` : `the disk refuses: ${plain(detail)}`,
          state === 'full'
            ? 'free some space; messages are kept in memory meanwhile'
            : 'check the disk and its mount (dmesg); messages are kept in memory meanwhile',
        );
  if (outbox.balanced) return [disk];
  return [disk, fail('books', 'the two sides of the buffer differ', 'make a support bundle and report this')];
}

function driverFinding({ name, driver, state, since, reason }: StatusReport['drivers'][number]): Finding {
  const what = name === driver ? `driver ${name}` : `driver ${name} (${driver})`;
  const why = plain(reason ?? 'no reason given');
  switch (state) {
    case 'up':
      return ok(what, `up since ${clockTime(since)}`);
    case 'starting':
      return warn(
        what,
        'has heard nothing of its devices yet',
        'check that they are switched on and connected',
      );
    case 'down':
      return fail(
        what,
        `no device since ${clockTime(since)}: ${why}`,
        'check power, cable and address of the device',
      );
    case 'rejected':
      return fail(
        what,
        `refused: ${why}`,
        'correct its options or password, then systemctl reload kit-connector',
      );
    case 'hung':
      return fail(
        what,
        `does not stop: ${why}`,
        'restart kit-connector and report this with a support bundle',
      );
    default:
      return warn(what, state, 'restart kit-connector');
  }
}

function assetFinding({ name, key, type, reason, last_seen_at }: StatusReport['assets'][number]): Finding {
  const seen = last_seen_at === null ? '' : `, last seen at ${clockTime(last_seen_at)}`;
  return warn(
    `${type} ${plain(name)} (${key})`,
    `offline: ${plain(reason ?? 'nothing is heard of it')}${seen}`,
    type === 'drone'
      ? 'check that it is switched on, and the radio: plugged in, antenna, range'
      : 'check its power, its cable and its network',
  );
}
