/** Viewers of video (WHEP, draft-ietf-wish-whep): offer and answer, the servers that help them to connect, and their end. */
import { type OpenAPIHono, z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { sdp_chars_max } from '../../contract/whep.ts';
import { type Gate, hasCookieOnly } from '../access/gate.ts';
import { RequestProblem } from '../api/problem.ts';
import { demandScope } from '../principal.ts';
import type { Service } from '../service.ts';
import { texts } from '../texts.ts';
import { iceLinks, type VideoSettings } from '../video/ice-servers.ts';
import { anyProblem, asProblem, assetParams, type Env, responseHeaders, routesUnder } from './context.ts';
import { askerOf } from './guards.ts';
import { newRoutes } from './problems.ts';

const route = routesUnder('assets');
const path = '/api/kits/{kit_id}/assets/{asset_id}/whep';
const sdp = (description: string) => ({
  description,
  content: { 'application/sdp': { schema: z.string(), example: 'v=0' } },
});

const watchVideo = route('post', path, {
  operationId: 'watchVideo',
  summary: 'Watch the video of an asset (WHEP)',
  description:
    'Takes the SDP offer of a viewer, with all its candidates, to the media server of the kit and returns the answer. The video does not pass the service. `Link` headers with `rel="ice-server"` name STUN and TURN servers, with credentials that expire; an authenticated OPTIONS request to this path returns them before the offer is made. There is no trickle ICE: PATCH is answered 405.',
  request: {
    params: assetParams,
    body: { required: true, ...sdp('offer'), description: `SDP, at most ${sdp_chars_max} characters` },
  },
  responses: {
    201: {
      ...sdp('the answer of the media server; DELETE of `Location` ends the video'),
      headers: responseHeaders.location,
    },
    ...anyProblem,
    403: asProblem(403, 'the kit sends no video over its link, or the key lacks the scope'),
    404: asProblem(404, 'no such asset, or it has no video'),
    406: asProblem(406, 'the viewer cannot play the codec of the camera'),
    413: asProblem(413, 'the offer is too large'),
    415: asProblem(415, 'the Content-Type is not application/sdp'),
    504: asProblem(504, 'the kit did not answer in time'),
  },
});

const leaveVideo = route('delete', `${path}/{viewer_id}`, {
  operationId: 'leaveVideo',
  summary: 'End the video of a viewer (WHEP)',
  description: 'Ends the video that `watchVideo` began, at the media server of the kit.',
  request: {
    params: assetParams.extend({
      viewer_id: z
        .uuid()
        .openapi({ param: { name: 'viewer_id', in: 'path', description: 'as in `Location`' } }),
    }),
  },
  responses: { 204: { description: 'the kit was told' }, ...anyProblem },
});

export interface VideoRouteParts {
  readonly service: Service;
  readonly gate: Gate;
  /** Left out: no server helps viewers to connect. */
  readonly video_settings?: VideoSettings | undefined;
}

export function videoRoutes({ service, gate, video_settings }: VideoRouteParts): OpenAPIHono<Env> {
  const routes = newRoutes();
  const nameServers = (c: Context<Env>, user: string): void => {
    const links = video_settings ? iceLinks(video_settings, user, Date.now()) : [];
    for (const link of links) c.header('Link', link, { append: true });
  };
  routes.openapi(watchVideo, async (c) => {
    const { principal } = c.var;
    const { signal } = c.req.raw;
    demandScope(principal, 'read');
    const offer = await c.req.text();
    if (offer.length > sdp_chars_max)
      throw new RequestProblem('too-large', texts.sdp_too_large(sdp_chars_max));
    const { kit_id, asset_id } = c.req.valid('param');
    const { viewer_id, answer } = await service.watch(principal, kit_id, { asset_id, offer });
    // A viewer that closes its connection before it has the answer cannot end what it does not know of.
    const end = () => void service.leave(principal, kit_id, { asset_id, viewer_id }).catch(() => undefined);
    if (signal.aborted) end();
    else signal.addEventListener('abort', end, { once: true });
    nameServers(c, principal.key_id);
    c.header('Location', `/api/kits/${kit_id}/assets/${asset_id}/whep/${viewer_id}`);
    return c.body(answer, 201, { 'content-type': 'application/sdp' });
  });
  routes.openapi(leaveVideo, async (c) => {
    demandScope(c.var.principal, 'read');
    const { kit_id, asset_id, viewer_id } = c.req.valid('param');
    await service.leave(c.var.principal, kit_id, { asset_id, viewer_id });
    return c.body(null, 204);
  });
  // Browsers cannot use servers that they learn of with the answer (wish-wg/webrtc-http-ingest-protocol#66). A preflight has no key.
  routes.options('/api/kits/:kit_id/assets/:asset_id/whep', async (c) => {
    const asker = askerOf(c);
    const principal = await gate.identify(asker).catch(() => undefined);
    const isForeign = hasCookieOnly(asker.headers) && !gate.isOwnPage(asker);
    if (principal?.scopes.includes('read') && !isForeign) nameServers(c, principal.key_id);
    return c.body(null, 204, { allow: 'POST, OPTIONS', 'accept-post': 'application/sdp' });
  });
  return routes;
}
