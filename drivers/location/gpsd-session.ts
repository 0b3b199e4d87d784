/** A connection to gpsd that receives its reports, one JSON object per line. */
import { connect } from 'node:net';
import { StringDecoder } from 'node:string_decoder';
import { connectionFault } from '../../src/device/connection-fault.ts';
import { DeviceUnreachable } from '../../src/errors.ts';
import { deadline } from '../../src/platform/time.ts';
import { isReport } from './gpsd-reports.ts';
import { texts } from './texts.ts';

/** gpsd's own buffer for one report has 10240 bytes. */
export const line_chars_max = 65_536;
/** A receiver has some 20 lines a second, and all of a minute may come at once. 65,000 empty ones in a packet took 0.3 s. */
export const lines_per_s_max = 5_000;
const greeting_timeout_ms = 5_000;
const watch = '?WATCH={"enable":true,"json":true};\n';

interface Address {
  readonly host: string;
  readonly port: number;
}

/**
 * Calls `onLine` for every line until `signal` aborts, then resolves. Rejects with `DeviceUnreachable` when the connection is
 * refused, nothing arrives within 5 s of connecting, the first line is none of gpsd, a line is too long, or gpsd closes the
 * connection.
 */
export async function watchGpsd(
  { host, port }: Address,
  signal: AbortSignal,
  onLine: (line: string) => void,
): Promise<void> {
  if (signal.aborted) return;
  const socket = connect({ host, port });
  const utf8 = new StringDecoder('utf8');
  let rest = '';
  let hasReceived = false;
  let isGreeted = false;
  let [second_ms, lines_in_second] = [0, 0];
  let reason: string = texts.connection_closed;
  const fail = (why: string): void => {
    reason = why;
    socket.destroy();
  };
  const stop = (): void => void socket.destroy();
  signal.addEventListener('abort', stop, { once: true });
  socket.setKeepAlive(true, 10_000);
  socket.once('connect', () => socket.write(watch));
  socket.on('error', (error) => {
    reason = connectionFault(error, texts.gpsd_refused) ?? error.message;
  });
  socket.on('data', (chunk: Buffer) => {
    hasReceived = true;
    const lines = (rest + utf8.write(chunk)).split('\n');
    rest = lines.pop() ?? '';
    const now_ms = performance.now();
    if (now_ms - second_ms >= 1_000) [second_ms, lines_in_second] = [now_ms, 0];
    lines_in_second += lines.length;
    if (rest.length > line_chars_max) fail(texts.line_too_long);
    else if (lines_in_second > lines_per_s_max) fail(texts.too_many_lines(lines_per_s_max));
    else {
      for (const line of lines) {
        isGreeted ||= isReport(line);
        if (isGreeted) onLine(line);
        else fail(texts.not_gpsd);
      }
    }
  });
  const cancel = deadline(greeting_timeout_ms, () => {
    if (!hasReceived) fail(texts.no_greeting);
  });
  await new Promise<void>((resolve) => {
    socket.once('close', () => resolve());
  });
  cancel();
  signal.removeEventListener('abort', stop);
  if (!signal.aborted) throw new DeviceUnreachable(texts.gpsd_failed(host, port, reason));
}
