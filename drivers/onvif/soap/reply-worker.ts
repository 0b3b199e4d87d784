/** Worker thread that reads large replies, one at a time: a slow one stalls only this thread. */
import { parentPort } from 'node:worker_threads';
import { InvariantBroken } from '../../../src/errors.ts';
import { readEnvelope } from './envelope.ts';
import type { FromReplyThread } from './large-replies.ts';

if (!parentPort) throw new InvariantBroken('reply-worker.ts runs as a thread of the onvif driver only');
const port = parentPort;
const say = (what: FromReplyThread): void => port.postMessage(what);
port.on('message', (xml: string) => say(readEnvelope(xml)));
say('ready');
