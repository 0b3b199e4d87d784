/** Findings from the report of the running daemon: uplink, buffer, drivers, assets. Pure. */
import { channelKind } from '../../contract/topics.ts';
import type { QuarantinedMessage, StatusReport } from '../../kit/local/api.ts';
import { duration } from '../terminal/shell.ts';
import { balance } from '../status/view.ts';
import { type Finding, fail, ok, plain, warn } from './finding.ts';
import { keys_only, type Places } from './places.ts';
import { reasonOf } from '../../mqtt/codes.ts';
import { texts } from './texts.ts';
import { texts as cli_texts } from '../texts.ts';
import { localTime } from '../../platform/local-time.ts';
import { texts as vendorcamTexts } from '../../../drivers/vendorcam/texts.ts';

/** MQTT 5 section 2.4. */
const bad_client_id = 0x85;

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
    ...fileFindings(report.files),
    ...report.drivers.flatMap((driver) => [
      driverFinding(
        driver,
        report.assets.filter((asset) => asset.driver === driver.name && fails(asset)),
      ),
      ...deviceFindings(driver),
    ]),
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

/** Matches the words of reason codes, since the code is not here; what is said of TLS, sockets and proxies has its remedy already. */
function sessionRemedy(reason: string, { password, certificate }: Places): string {
  if (reason.includes('; ')) return texts.messages_buffered;
  if (reason.includes(reasonOf(bad_client_id).words)) return reasonOf(bad_client_id).remedy;
  if (!/not authori[sz]ed|bad user ?name|banned/iu.test(reason)) return texts.messages_buffered;
  return certificate === undefined
    ? texts.correct_login_and_restart(password)
    : texts.register_certificate(certificate);
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

/** Nothing where all is well: many kits have no files. */
function fileFindings(files: StatusReport['files']): readonly Finding[] {
  if (!files || files.fault === null) return [];
  return [warn('files', texts.uploads_fail(files.kept.files, plain(files.fault)), texts.check_uploads)];
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

/** `degraded`: its assets that do not deliver everything. */
function driverFinding(
  {
    name,
    driver,
    state,
    since,
    reason,
    next_try_at = null,
    facts,
    devices = [],
  }: StatusReport['drivers'][number],
  degraded: StatusReport['assets'],
): Finding {
  const what = name === driver ? `driver ${name}` : `driver ${name} (${driver})`;
  const why = plain(reason ?? 'unknown reason');
  const [fault, remedy] = remedied(why, next_try_at);
  switch (state) {
    case 'up':
      return upFinding(what, upText(localTime(since), devices), facts, degraded.length);
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
function upFinding(
  what: string,
  up: string,
  { reason }: StatusReport['drivers'][number]['facts'],
  degraded: number,
): Finding {
  if (degraded > 0) return warn(what, texts.not_all_delivered(up, degraded), texts.see_assets);
  if (typeof reason !== 'string') return ok(what, up);
  const [fault, remedy = texts.check_device] = halves(plain(reason));
  return warn(what, `${up}; ${fault}`, remedy);
}

function upText(since: string, devices: readonly { readonly state: string }[]): string {
  if (devices.length === 0) return texts.up_since(since);
  const online = devices.filter(({ state }) => state === 'online').length;
  return texts.up_with_devices(since, online, devices.length);
}

// Findings about the configured devices of a driver and about assets that are offline. Pure.

type DriverReport = StatusReport['drivers'][number];
type DeviceReport = NonNullable<DriverReport['devices']>[number];
type AssetReport = StatusReport['assets'][number];

/** For each device that is not served now what was tried, its answer, and the next attempt; and each weakness with its remedy. */
function deviceFindings({ name, facts, devices = [], next_try_at = null }: DriverReport): readonly Finding[] {
  const unserved = devices
    .filter(({ state, reason }) => (state === 'offline' || state === 'rejected') && reason !== null)
    .map((device) => deviceFinding(name, device, next_try_at));
  const { events_not_read: unread } = facts;
  return [
    ...unserved,
    ...devices.flatMap((device) => weaknessFinding(name, device)),
    // No fault: a camera reports much that is no alarm.
    ...(typeof unread === 'string' ? [ok(`events of ${name}`, texts.events_not_read(plain(unread)))] : []),
  ];
}

/** By which the kit is degraded although the device is configured so. */
function weaknessFinding(driver: string, { name, weakness }: DeviceReport): readonly Finding[] {
  if (weakness === undefined) return [];
  const [fault, remedy] = halves(plain(weakness));
  return [warn(`device ${plain(name)} of ${driver}`, fault, remedy ?? texts.correct_device)];
}

/** `driver_next`: next attempt of a driver whose devices all reject the connector. */
function deviceFinding(driver: string, device: DeviceReport, driver_next: string | null): Finding {
  const { name, tried, state, reason, tried_at, next_try_at } = device;
  const what = `device ${plain(name)} of ${driver}`;
  const at = tried_at === null ? '' : texts.tried_at(localTime(tried_at));
  const [answer, remedy] = halves(plain(reason ?? ''));
  const next = next_try_at === null ? [] : [texts.next_attempt(localTime(driver_next ?? next_try_at))];
  if (state === 'rejected') {
    const cure = [remedy ?? texts.correct_device, texts.reload_tries_now, ...next];
    return fail(what, texts.device_rejected(plain(tried), at, answer), cure.join('; '));
  }
  const cure = [remedy ?? texts.check_address, ...next];
  return warn(what, texts.device_not_served(plain(tried), at, answer), cure.join('; '));
}

/** Assets that are offline, or do not deliver everything; assets of a device that has its own finding are left out. */
function assetFindings({ assets, drivers }: StatusReport): readonly Finding[] {
  const explained = new Set(
    drivers
      .flatMap(({ devices = [] }) => devices)
      .filter(({ state }) => state === 'offline' || state === 'rejected')
      .map(({ asset_key }) => asset_key),
  );
  return assets.flatMap((asset) => {
    if (asset.status === 'online') return healthFindings(asset);
    return explained.has(asset.key) ? [] : [assetFinding(asset)];
  });
}

function fails({ health = {} }: AssetReport): boolean {
  return Object.values(health).some(({ state }) => state === 'fails');
}

/** One for each thing that it does not deliver, with the words of the device. */
function healthFindings({ name, key, type, health = {} }: AssetReport): readonly Finding[] {
  return Object.entries(health)
    .filter(([, { state }]) => state === 'fails')
    .map(([item, { reason, next_try_at }]) => {
      const [fault, remedy] = remedied(plain(reason ?? cli_texts.unknown), next_try_at);
      const finding = `${cli_texts.not_delivered(item)}: ${fault}`;
      return warn(`${type} ${plain(name)} (${key})`, finding, remedy(texts.check_offer));
    });
}

function assetFinding({ name, key, type, reason, last_seen_at }: AssetReport): Finding {
  const what = `${type} ${plain(name)} (${key})`;
  const seen = last_seen_at === null ? '' : texts.last_seen(localTime(last_seen_at));
  const finding = `${texts.offline(plain(reason ?? texts.no_data_received))}${seen}`;
  // A battery camera sleeps most of the time.
  if (reason === vendorcamTexts.asleep) return ok(what, finding);
  return warn(what, finding, type === 'drone' ? texts.check_radio : texts.check_cable);
}

/** Splits a sentence of the connector into the fault and, after the last semicolon, the remedy. */
export function halves(sentence: string): [fault: string, remedy?: string] {
  const at = sentence.lastIndexOf('; ');
  return at < 0 ? [sentence] : [sentence.slice(0, at), sentence.slice(at + 2)];
}
