/** Checks that the daemon makes progress, and writes its status line, both for systemd. */
import { no_broker } from '../config/broker.ts';
import type { DiskHealth } from '../outbox/protocol.ts';
import { within } from '../platform/time.ts';
import type { UplinkStatus } from '../uplink/uplink.ts';
import type { ReportParts } from './status-report.ts';

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
  /** `connected to broker.example.com, 4 assets online, 0 messages waiting` */
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
    summary: () => summary(parts),
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

function summary({ uplink, hub, outbox, config }: ReportParts): string {
  const broker = config.broker?.url ?? 'its own broker';
  const online = hub.assets().filter(({ status }) => status === 'online').length;
  const lost = hub.drivers().filter(({ state }) => state === 'rejected' || state === 'hung');
  return [
    // What is wrong comes first: a narrow terminal cuts the end of the line.
    ...disk(outbox.health()),
    connection(uplink.status(), broker),
    `${online} ${online === 1 ? 'asset' : 'assets'} online`,
    `${outbox.ledger().buffered} messages waiting`,
    ...lost.map(({ name, state }) => `driver ${name} ${state}`),
  ].join(', ');
}

function disk({ state, detail }: DiskHealth): readonly string[] {
  if (state === 'ok') return [];
  return [state === 'full' ? 'disk full' : `disk failing (${inShort(detail)})`];
}

/** A wrong password, a name that is not found and a broker that is down differ in the broker's and the system's own words. */
function connection(
  { state, last_error }: Pick<UplinkStatus, 'state' | 'last_error'>,
  broker: string,
): string {
  if (state === 'connected') return `connected to ${hostOf(broker)}`;
  if (broker === no_broker) return 'no broker is configured, messages are kept';
  const why = last_error === null ? `connecting to ${hostOf(broker)}` : inShort(last_error);
  return `not connected (${why}), messages are kept`;
}

/** systemd shows one line, and the words may be a device's or a broker's. */
const reason_chars_max = 120;

function inShort(text: string): string {
  const line = text.replaceAll(/\p{C}+/gu, ' ').trim();
  return line.length > reason_chars_max ? `${line.slice(0, reason_chars_max)}...` : line;
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).hostname : url;
}
