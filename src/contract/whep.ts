/**
 * Video beyond the network of the kit (WHEP, draft-ietf-wish-whep): the offer of a viewer and the answer of the kit's media server. Both
 * stand outside the buffer: an answer that is late is of no use. The video itself never goes over MQTT.
 */
import { z } from 'zod';
import { sentence_chars_max } from './limits.ts';

/** An offer of Chromium for video and audio has 7 kB, an answer of MediaMTX 2 kB. */
export const sdp_chars_max = 32 * 1024;
/** The broker discards offer and answer after this time. */
export const whep_expiry_s = 10;

const sdp = z.string().min(1).max(sdp_chars_max);

/** On `down/whep`, never retained. */
export const whepRequest = z.object({
  id: z.uuid().describe('of this viewer; the answer comes on `up/whep/{id}`'),
  asset_id: z.uuid(),
  offer: sdp.nullable().describe('SDP with all candidates of the viewer; null: it has left'),
});
export type WhepRequest = z.output<typeof whepRequest>;

/** On `up/whep/{id}`, without an envelope. */
export const whepAnswer = z.union([
  z.object({ answer: sdp.describe('SDP with all candidates of the media server') }),
  z.object({
    refused: z
      .enum(['no_stream', 'link', 'codec', 'unavailable'])
      .describe(
        '`no_stream`: the asset has no video; `link`: not allowed on the link in use; `codec`: the viewer cannot play it; `unavailable`: not now',
      ),
    reason: z.string().min(1).max(sentence_chars_max),
  }),
]);
export type WhepAnswer = z.output<typeof whepAnswer>;
