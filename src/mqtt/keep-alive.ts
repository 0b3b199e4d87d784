/** Measures the keep-alive by bytes instead of by packets: a large message that comes slowly is a sign of life. */
import { every } from '../platform/time.ts';
import type { MqttStream } from './stream.ts';
import { texts } from './texts.ts';

const pingreq = Buffer.from([0xc0, 0]);
/** The keep-alive is checked so many times in its period. */
const checks_per_period = 10;
/** A ping that nothing at all follows for this part of the period means that the connection is dead. */
const ping_unanswered_share = 0.5;

/** Pings when nothing was sent or received for a period; ends the connection when a ping is followed by silence. */
export function keepAlive(stream: MqttStream, period_ms: number): void {
  if (period_ms <= 0) return;
  const closed = new AbortController();
  stream.once('close', () => closed.abort());
  const check_ms = period_ms / checks_per_period;
  let pinged_ms: number | undefined;
  let isOverdue = false;
  every(check_ms, closed.signal, () => {
    const now_ms = performance.now();
    if (pinged_ms !== undefined && stream.last_received_ms >= pinged_ms) pinged_ms = undefined;
    if (pinged_ms !== undefined && now_ms - pinged_ms > period_ms * ping_unanswered_share) {
      // After a stall of this process the timer comes before the answer that waits in the socket: the next check has seen it.
      if (!isOverdue) {
        isOverdue = true;
        return;
      }
      const silent_s = ((now_ms - pinged_ms) / 1000).toFixed(1);
      stream.fail(new Error(texts.ping_unanswered(silent_s)));
      return;
    }
    isOverdue = false;
    const idle_ms = now_ms - Math.min(stream.sent_ms, stream.last_received_ms);
    if (idle_ms < period_ms - check_ms || pinged_ms !== undefined) return;
    pinged_ms = now_ms;
    stream.write(pingreq);
  });
}
