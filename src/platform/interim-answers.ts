/** Limits the interim answers of a server: no limit on the size of a reply counts them, and each of them is read. */
import type { ClientRequest } from 'node:http';
import { texts } from './texts.ts';

/** Status 1xx before the reply; none is asked for. */
const interim_answers_max = 16;

/**
 * Ends the request with an error once its server sends more of them than that, or switches the protocol (101): no request asks
 * for it, and Node.js would close the connection with neither an answer nor an error.
 */
export function limitInterimAnswers(request: ClientRequest): void {
  let count = 0;
  request.on('information', () => {
    count += 1;
    if (count > interim_answers_max) request.destroy(new Error(texts.interim_answers));
  });
  request.once('upgrade', (_, socket) => {
    socket.destroy();
    request.emit('error', new Error(texts.other_protocol));
  });
}
