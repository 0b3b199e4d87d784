/** Findings from the report of the running daemon: uplink, buffer, drivers, assets. Pure. */
import { channelKind } from '../../contract/topics.ts';
import type { QuarantinedMessage, StatusReport } from '../../local/api.ts';
import { duration } from '../terminal/shell.ts';
import { balance } from '../status/view.ts';
import { assetFindings, deviceFindings, halves } from './devices.ts';
import { type Finding, fail, ok, plain, warn } from './finding.ts';
import { keys_only, type Places } from './places.ts';
import { texts } from './texts.ts';
import { localTime } from '../../platform/local-time.ts';

/** `refused`: the messages in quarantine. */
export function kitFindings(
  report: StatusReport,
  refused: readonly QuarantinedMessage[],
  places: Places = keys_only,
): readonly Finding[] {
  return [
    ok('daemon', texts.running_for(report.version, duration(report.uptime_s))),
    uplinkFinding(report.uplink, places),
    ...brokerFindings(report.degraded),
    ...rightsFindings(report, refused),
    ...bufferFindings(report.outbox),
    ...report.drivers.flatMap((driver) => [driverFinding(driver), ...deviceFindings(driver)]),
    ...assetFindings(report),
  ];
}

function uplinkFinding(uplink: StatusReport['uplink'], places: Places): Finding {
  const { state, since, last_error, protocol, rtt_ms, broker } = uplink;
  if (state === 'connected') {
    const speed = rtt_ms === null ? '' : texts.round_trip(Math.round(rtt_ms));
    return ok('broker session', `MQTT ${protocol ?? ''} since ${localTime(since)}${speed}`);
  }
  if (state === 'stopped') {
    return warn('broker session', texts.no_broker_configured, texts.set_up_broker);
  }
  return fail(
    'broker session',
    texts.not_connected(broker, localTime(since), plain(last_error ?? 'connecting')),
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
  if (/another name|altname|does not match/iu.test(reason)) return texts.use_certificate_name;
  if (/expired|not valid yet|not yet valid/iu.test(reason)) {
    return texts.renew_broker_certificate;
  }
  if (/certificate|self.signed/iu.test(reason)) {
    return texts.set_ca_and_restart(ca);
  }
  if (/not authori[sz]ed|bad user ?name|password|banned|identifier/iu.test(reason)) {
    return texts.correct_login_and_restart(password);
  }
  return texts.messages_buffered;
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
        texts.broker_rejected_messages(
          outbox.quarantined,
          kinds.size > 0 ? `: ${[...kinds].join(', ')}` : '',
        ),
        texts.retry_quarantine,
      ),
    );
  }
  if (uplink.unheard.length > 0) {
    findings.push(
      warn('broker listeners', texts.no_subscriber(uplink.unheard.join(', ')), texts.start_cloud_services),
    );
  }
  return findings;
}

function bufferFindings(outbox: StatusReport['outbox']): readonly Finding[] {
  const { state, detail, fault } = outbox.health;
  const isFull = state === 'full' || fault === 'full';
  const disk =
    state === 'ok'
      ? ok('buffer', balance(outbox))
      : fail(
          'buffer',
          (isFull ? texts.disk_full : texts.disk_write_failed)(plain(detail)),
          state === 'full' ? texts.free_space_until : disk_remedies[fault ?? 'other'],
        );
  const dropping = (outbox.dropping ?? []).map((sentence) => {
    const [what, remedy = ''] = halves(plain(sentence));
    return fail('buffer', `${what} (${balance(outbox)})`, remedy);
  });
  const findings = dropping.length > 0 && state === 'ok' ? dropping : [disk, ...dropping];
  if (outbox.balanced) return findings;
  return [...findings, fail('buffer counters', texts.accounting_mismatch, texts.bundle_and_report)];
}

/** While messages are buffered in memory. */
const disk_remedies = {
  full: texts.free_space_buffering,
  read_only: texts.repair_disk,
  busy: texts.unlock_buffering,
  other: texts.check_disk_buffering,
} as const;

function driverFinding({
  name,
  driver,
  state,
  since,
  reason,
  next_try_at = null,
  facts,
  devices = [],
}: StatusReport['drivers'][number]): Finding {
  const what = name === driver ? `driver ${name}` : `driver ${name} (${driver})`;
  const why = plain(reason ?? 'unknown reason');
  const [fault, remedy] = remedied(why, next_try_at);
  switch (state) {
    case 'up':
      return upFinding(what, upText(localTime(since), devices), facts);
    case 'starting':
      if (devices.some((device) => device.reason !== null)) {
        return warn(what, texts.no_device_online, texts.see_devices);
      }
      return warn(what, texts.no_data_yet, texts.check_devices_on);
    case 'down':
      return fail(what, texts.no_device(localTime(since), fault), remedy(texts.check_device));
    case 'rejected':
      return fail(what, `rejected: ${fault}`, remedy(texts.correct_options));
    case 'hung':
      return fail(what, texts.does_not_stop(why), texts.restart_and_report);
    default:
      return warn(what, state, 'restart kit-connector');
  }
}

/** The fault, and its own remedy or a general one, with the next attempt. */
function remedied(
  why: string,
  next_try_at: string | null,
): [fault: string, remedy: (general: string) => string] {
  const [fault, own] = halves(why);
  const next = next_try_at === null ? '' : `; ${texts.next_attempt(localTime(next_try_at))}`;
  return [fault, (general) => `${own ?? general}${next}`];
}

/** A driver may be connected to a device that gives nothing, such as a receiver without a fix; it reports why. */
function upFinding(what: string, up: string, { reason }: StatusReport['drivers'][number]['facts']): Finding {
  if (typeof reason !== 'string') return ok(what, up);
  const [fault, remedy = texts.check_device] = halves(plain(reason));
  return warn(what, `${up}; ${fault}`, remedy);
}

function upText(since: string, devices: readonly { readonly state: string }[]): string {
  if (devices.length === 0) return texts.up_since(since);
  const online = devices.filter(({ state }) => state === 'online').length;
  return texts.up_with_devices(since, online, devices.length);
}
