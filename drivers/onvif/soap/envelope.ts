/** Reads SOAP envelopes with npm onvif's parser, from sanitized text. */
import { parseSOAPString } from 'onvif/lib/utils.js';
import { messageOf } from '../../../src/errors.ts';
import { emptyPull } from './empty-pull.ts';
import { failure, type Reading } from './soap-call.ts';
import { tamed, treeOf } from './xml.ts';
import { texts } from '../texts.ts';

/** The SOAP body of an envelope; `malformed` for anything else. Never throws. */
export function readEnvelope(xml: string): Reading {
  let found = emptyPull(xml);
  if (found) return { kind: 'read', body: found };
  let reason: string = texts.no_envelope;
  try {
    parseSOAPString(tamed(xml), (error: Error | null, body: unknown) => {
      // The library calls twice when its callback throws; the first result counts.
      if (found) return;
      const first: unknown = Array.isArray(body) ? body[0] : body;
      if (typeof first === 'object' && first !== null) found = treeOf(first);
      else if (typeof first === 'string' && !error) found = treeOf(first);
      else if (error) reason = error.message.startsWith('Wrong ONVIF') ? texts.no_envelope : error.message;
    });
  } catch (error) {
    reason = messageOf(error);
  }
  return found ? { kind: 'read', body: found } : failure('malformed', texts.reply_unread(reason));
}
