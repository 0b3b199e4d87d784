/** A thread that reads replies and stalls, fails or uses up its memory when a reply says so, for the tests of what watches it. */
import { parentPort } from 'node:worker_threads';
import type { FromReplyThread } from '../../../drivers/onvif/soap/large-replies.ts';

const say = (what: FromReplyThread): void => parentPort?.postMessage(what);
parentPort?.on('message', (xml: string) => {
  if (xml.includes('stall')) for (;;);
  if (xml.includes('devour'))
    for (const much: unknown[] = []; ;) much.push(Array.from({ length: 1_000 }, () => ({})));
  say({ kind: 'read', body: { text: xml.trim(), attributes: {}, children: {} } });
});
say('ready');
