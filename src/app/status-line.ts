/** The line of `systemctl status`: what is wrong first, since a narrow terminal cuts its end. */
import { no_broker } from '../config/broker.ts';
import type { DriverView } from '../hub/hub.ts';
import { degraded, type ReportParts } from './status-report.ts';
import { texts } from './texts.ts';

/** systemd shows one line, and the words may be a device's or a broker's. */
const reason_chars_max = 160;
/** Room for the faults; the notifier cuts the line at 500. */
const faults_chars_max = 350;

/** `disk full ... | not connected (...), messages are kept | 4 assets online, 0 messages waiting` */
export function statusLine(parts: ReportParts): string {
  const { uplink, hub, outbox, config } = parts;
  const host = hostOf(config.broker?.url ?? texts.own_broker);
  const reasons = degraded(parts).map(inShort);
  const disk = outbox.health().state === 'ok' ? 0 : 1;
  const isConnected = uplink.status().state === 'connected';
  const online = hub.assets().filter(({ status }) => status === 'online').length;
  const facts = [
    ...(isConnected ? [texts.line_connected(inShort(host))] : []),
    texts.line_assets(online),
    texts.line_waiting(outbox.ledger().buffered),
  ];
  const faults = [
    ...reasons.slice(0, disk),
    ...connectionFault(parts, host),
    ...reasons.slice(disk),
    ...hub.drivers().flatMap(driverFaults),
  ];
  return [...thatFit(faults), facts.join(', ')].join(' | ');
}

/** A kit without a broker is named among the reasons already. */
function connectionFault({ uplink, config, outbox }: ReportParts, host: string): readonly string[] {
  const { state, last_error } = uplink.status();
  if (state === 'connected' || config.broker?.url === no_broker) return [];
  const line = outbox.drop_episodes.current.length === 0 ? texts.line_not_connected : texts.line_dropping;
  return [line(inShort(last_error ?? texts.line_connecting(host)))];
}

/** Drivers and devices that are not served, beside the drivers that are among the reasons. */
function driverFaults({ name, state, reason, devices = [] }: DriverView): readonly string[] {
  if (state === 'rejected' || state === 'hung') return [];
  if (state === 'down') return [texts.line_driver_down(name, inShort(reason ?? texts.no_reason))];
  return devices
    .filter((device) => device.state === 'rejected')
    .map((device) =>
      texts.line_device_rejected(inShort(device.name), inShort(device.reason ?? texts.no_reason)),
    );
}

/** Those for which there is room, the first in any case, and how many more there are. */
function thatFit(faults: readonly string[]): readonly string[] {
  const shown: string[] = [];
  let chars = 0;
  for (const fault of faults) {
    chars += fault.length;
    if (shown.length > 0 && chars > faults_chars_max) break;
    shown.push(fault);
  }
  const left = faults.length - shown.length;
  return left === 0 ? shown : [...shown, texts.line_more_faults(left)];
}

function inShort(text: string): string {
  const line = text.replaceAll(/\p{C}+/gu, ' ').trim();
  return line.length > reason_chars_max ? `${line.slice(0, reason_chars_max)}...` : line;
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).hostname : url;
}
