/** Gives the offer of a viewer to a media server (WHEP, draft-ietf-wish-whep) and ends what came of it. */
import { isIP } from 'node:net';
import { z } from 'zod';
import { sdp_chars_max } from '../../contract/whep.ts';
import { cut } from '../../contract/limits.ts';
import { type ApiAccess, type ApiAnswer, askApi } from './api-request.ts';
import { OfferRefused, type Viewing } from './server.ts';
import { texts } from './texts.ts';

/** MediaMTX starts the stream of the camera first, and has 10 s for it; the viewer waits as long. */
const answer_ms = 9_000;
const words_max = 300;
/** RFC 8445, section 5.1.2.1: type preference 100, local preference 65535, component 1. */
const srflx_priority = 1_694_498_815;

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

/**
 * Names the public address of the kit in an answer, beside the host candidate of the same port. A TURN server admits packets by the address
 * that they come from, so this is enough for a viewer that relays; the media server does not have to ask STUN, which costs a round trip.
 */
export function withPublicAddress(answer: string, address: string): string {
  if (answer.includes(` ${address} `)) return answer;
  const hosts = [...answer.matchAll(/^a=candidate:\S+ 1 udp \d+ (\S+) (\d+) typ host.*$/gimu)];
  const host = hosts.find(([, ip = '']) => isIP(ip) === isIP(address) && !isLoopback(ip));
  if (!host) return answer;
  const [line, , port] = host;
  return answer.replace(
    line,
    () =>
      `${line}\r\na=candidate:kit 1 udp ${srflx_priority} ${address} ${port} typ srflx raddr 0.0.0.0 rport 0`,
  );
}

function isLoopback(ip: string): boolean {
  return ip.startsWith('127.') || ip === '::1';
}

/** The `DELETE` of WHEP; a viewer that has left is no error. */
export async function deleteViewing(access: ApiAccess, resource: string, signal: AbortSignal): Promise<void> {
  const { status } = await askApi(access, { method: 'DELETE', path: resource, signal });
  if (status !== 404 && (status < 200 || status > 299)) throw new Error(texts.http_status(status, ''));
}

/** Below an address that may have a path of its own, as behind a proxy. */
export function below(url: string, path: string): string {
  return new URL(path, url.endsWith('/') ? url : `${url}/`).href;
}

/** MediaMTX answers 400 for a codec, go2rtc 500; both say so in words. */
function refused({ status, headers, text, body }: ApiAnswer): Error {
  const { data } = refusal.safeParse(body);
  const words = cut((data?.error ?? text).trim(), words_max);
  if (/codec/iu.test(words)) return new OfferRefused('codec', texts.codec(words));
  if (status === 401) return new OfferRefused('unavailable', texts.viewer_login);
  // Not followed (RFC 9725, section 4.5, wants it): viewers of the kit's own network get the address that is configured.
  if (status >= 300 && status < 400)
    return new OfferRefused('unavailable', texts.redirected(cut(headers.location ?? '', words_max)));
  if (status === 404) return new OfferRefused('unavailable', texts.no_picture(words));
  return new OfferRefused('unavailable', texts.offer_refused(status, words));
}
