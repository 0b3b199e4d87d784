/** Gives the offer of a viewer to a media server (WHEP, draft-ietf-wish-whep) and ends what came of it. */
import { z } from 'zod';
import { sdp_chars_max } from '../../contract/whep.ts';
import { cut } from '../../contract/limits.ts';
import { type ApiAccess, type ApiAnswer, askApi } from './api-request.ts';
import { OfferRefused, type Viewing } from './server.ts';
import { texts } from './texts.ts';

/** MediaMTX starts the stream of the camera first, and has 10 s for it; the viewer waits as long. */
const answer_ms = 9_000;
const words_max = 300;

const refusal = z.looseObject({ error: z.string() });

/** Rejects with `OfferRefused`, or with any other error when the server does not answer. */
export async function postOffer(
  access: ApiAccess,
  { path, offer, signal }: { readonly path: string; readonly offer: string; readonly signal: AbortSignal },
): Promise<Viewing> {
  const answer = await askApi(access, { method: 'POST', path, body: offer, signal, deadline_ms: answer_ms });
  if (answer.status !== 201 || !answer.text.startsWith('v=0')) throw refused(answer);
  if (answer.text.length > sdp_chars_max) throw new Error(texts.answer_too_large(sdp_chars_max));
  const endpoint = new URL(path, access.api_url);
  const resource = URL.parse(answer.headers.location ?? '', endpoint);
  const isOwn = answer.headers.location !== undefined && resource?.origin === endpoint.origin;
  const { id } = answer.headers;
  return {
    answer: answer.text,
    resource: isOwn ? resource.href : null,
    session: typeof id === 'string' ? id : null,
  };
}

/** The `DELETE` of WHEP; a viewer that has left is no error. */
export async function deleteViewing(access: ApiAccess, resource: string, signal: AbortSignal): Promise<void> {
  const { status } = await askApi(access, { method: 'DELETE', path: resource, signal });
  if (status !== 404 && (status < 200 || status > 299)) throw new Error(texts.http_status(status, ''));
}

/** MediaMTX answers 400 for a codec, go2rtc 500; both say so in words. */
function refused({ status, text, body }: ApiAnswer): Error {
  const { data } = refusal.safeParse(body);
  const words = cut((data?.error ?? text).trim(), words_max);
  if (/codec/iu.test(words)) return new OfferRefused('codec', texts.codec(words));
  if (status === 404) return new OfferRefused('unavailable', texts.no_picture(words));
  return new OfferRefused('unavailable', texts.offer_refused(status, words));
}
