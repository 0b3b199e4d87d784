/** Whether the RTSP port of a camera takes connections: the media server fetches a stream only while somebody watches. */
import { connect } from 'node:net';
import { systemReason } from '../../platform/errors.ts';
import { aborted, deadline } from '../../platform/time.ts';
import { texts } from './texts.ts';

const answer_deadline_ms = 5_000;
const default_ports: ReadonlyMap<string, number> = new Map([
  ['rtsp:', 554],
  ['rtsps:', 322],
]);

/** Connects once and sends nothing. Resolves with why the port takes none; null: it does, or that is not known. */
export async function portFault(rtsp_url: string, signal: AbortSignal): Promise<string | null> {
  const url = URL.parse(rtsp_url);
  if (!url) return null;
  const host = url.hostname.replace(/^\[|\]$/gu, '');
  const port = url.port === '' ? (default_ports.get(url.protocol) ?? 0) : Number(url.port);
  const socket = connect({ host, port });
  const answer = Promise.withResolvers<string | null>();
  socket.once('connect', () => answer.resolve(null));
  socket.on('error', (error) => answer.resolve(texts.port_closed(port, systemReason(error))));
  const cancel = deadline(answer_deadline_ms, () => answer.resolve(texts.port_closed(port, texts.no_answer)));
  try {
    return await Promise.race([answer.promise, aborted(signal).then(() => null)]);
  } finally {
    cancel();
    socket.destroy();
  }
}
