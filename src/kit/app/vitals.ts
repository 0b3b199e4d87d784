/** Checks that the daemon makes progress, for systemd. */
import { within } from '../../platform/time.ts';
import { type ReportParts, degraded } from './status-report.ts';
import { no_broker } from '../config/broker.ts';
import type { DriverView } from '../hub/hub.ts';
import { texts } from './texts.ts';

/** The hub goes through its drivers every second; more than this means that it does not. */
const hub_silent_ms = 5_000;
/** Average lag of the event loop above which the daemon counts as stuck. */
const lag_mean_max_ms = 2_000;
/**
 * A disk that does not answer is worked around: messages leave from memory, and a restart would lose those and meet the same
 * disk. After this time the thread itself is under suspicion.
 */
const disk_silent_max_ms = 600_000;
/** No task has this id; to look for it costs one look into an index. */
const no_task = 'vital-sign';

export interface Vitals {
  /**
   * Resolves with undefined once every part has shown progress, or with a sentence on the part that has not within
   * `ms`. The broker does not matter: a kit without a link is well.
   */
  readonly check: (ms: number) => Promise<string | undefined>;
  /** What is wrong, then `connected to broker.example.com, 4 assets online, 0 messages waiting`. */
  readonly summary: () => string;
}

export function vitals(parts: ReportParts): Vitals {
  return {
    async check(ms) {
      const answered = await within(ms, bufferAnswers(parts));
      if (!answered && !isWorkedAround(parts))
        return `the thread of the buffer has not answered within ${Math.round(ms / 1_000)} s`;
      const silent_ms = performance.now() - parts.hub.ticked_ms();
      if (silent_ms > Math.max(hub_silent_ms, ms))
        return `the drivers have not been looked after for ${Math.round(silent_ms / 1_000)} s`;
      const { mean_ms } = parts.lag.figures();
      return mean_ms > lag_mean_max_ms
        ? `the event loop is ${Math.round(mean_ms)} ms late on average`
        : undefined;
    },
    summary: () => statusLine(parts),
  };
}

function isWorkedAround({ outbox }: ReportParts): boolean {
  return outbox.health().state === 'failing' && outbox.unanswered_ms() < disk_silent_max_ms;
}

/** A disk that refuses is a normal state, and its refusal an answer; a commit that never ends is neither. */
async function bufferAnswers({ outbox }: ReportParts): Promise<true> {
  const isRefused = outbox.health().state === 'failing';
  await Promise.allSettled([outbox.find(no_task), isRefused ? undefined : outbox.committed()]);
  return true;
}

/** systemd shows one line, and the words may be a device's or a broker's. */
const reason_chars_max = 160;
/** Room for the faults; the notifier cuts the line at 500. */
const faults_chars_max = 350;

/** `disk full ... | not connected (...), messages are kept | 4 assets online, 0 messages waiting` */
function statusLine(parts: ReportParts): string {
  const { uplink, hub, outbox, config } = parts;
  const host = hostOf(config.broker ? uplink.broker_url : texts.own_broker);
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
