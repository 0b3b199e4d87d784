/** Whether the daemon makes progress, and one line on how it is: what systemd is told. */
import { no_broker } from '../config/broker.ts';
import { within } from '../platform/time.ts';
import type { ReportParts } from './report.ts';

/** The hub goes through its drivers every second; more than this means that it does not. */
const hub_silent_ms = 5_000;
/** An event loop that is later than this on average serves nobody. */
const lag_mean_max_ms = 2_000;
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
      if (!answered) return `the thread of the buffer has not answered within ${Math.round(ms / 1_000)} s`;
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

/** A disk that refuses is a normal state, and its refusal an answer; a commit that never ends is neither. */
async function bufferAnswers({ outbox }: ReportParts): Promise<true> {
  const isRefused = outbox.health().state === 'failing';
  await Promise.allSettled([outbox.find(no_task), isRefused ? undefined : outbox.committed()]);
  return true;
}

function summary({ uplink, hub, outbox, config }: ReportParts): string {
  const { state } = uplink.status();
  const broker = config.broker?.url ?? 'its own broker';
  const online = hub.assets().filter(({ status }) => status === 'online').length;
  const lost = hub.drivers().filter(({ state }) => state === 'rejected' || state === 'hung');
  return [
    connection(state === 'connected', broker),
    `${online} ${online === 1 ? 'asset' : 'assets'} online`,
    `${outbox.ledger().buffered} messages waiting`,
    ...lost.map(({ name, state }) => `driver ${name} ${state}`),
  ].join(', ');
}

function connection(is_connected: boolean, broker: string): string {
  if (is_connected) return `connected to ${hostOf(broker)}`;
  return broker === no_broker
    ? 'no broker is configured, messages are kept'
    : 'not connected, messages are kept';
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).hostname : url;
}
