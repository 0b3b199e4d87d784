/** go2rtc by its HTTP API. It writes added streams to its own file, so they survive its restart. */
import { z } from 'zod';
import { askApi } from './api-request.ts';
import { below, deleteViewing, postOffer } from './offer.ts';
import type { MediaServerOptions } from './mediamtx.ts';
import { type MediaServer, StreamRefused } from './server.ts';
import { texts } from './texts.ts';

const streams = z.record(
  z.string(),
  z.looseObject({ producers: z.array(z.looseObject({ url: z.string().optional() })).nullish() }).nullable(),
);

/** Also what it refuses. A change is made before it is written, and its file may be read-only, or none (app.PatchConfig; AlexxIT/go2rtc#182). */
const file_unwritten = 400;

export function go2rtc(options: MediaServerOptions): MediaServer {
  const query = (parameters: Record<string, string>): string =>
    `/api/streams?${new URLSearchParams(parameters).toString()}`;

  /** What this run has put there: the list has `***` for the login (pkg/creds/secrets.go, since 1.9.11). */
  const put = new Map<string, string>();

  const has: MediaServer['has'] = async ({ name, rtsp_url }, signal) => {
    const { status, body } = await askApi(options, { method: 'GET', path: '/api/streams', signal });
    expectOk(status);
    const known = streams.safeParse(body).data?.[name];
    const hidden = put.get(name) === rtsp_url ? rtsp_url.replace(/:\/\/[^@/]+@/u, '://***@') : rtsp_url;
    return known?.producers?.some(({ url }) => url === rtsp_url || url === hidden) ?? false;
  };

  return {
    name: 'go2rtc',
    has,
    async put(stream, signal) {
      const { name, rtsp_url } = stream;
      const { status } = await askApi(options, {
        method: 'PUT',
        path: query({ name, src: rtsp_url }),
        signal,
      });
      if (status !== file_unwritten) expectOk(status);
      put.set(name, rtsp_url);
      if (status === file_unwritten && !(await has(stream, signal)))
        throw new StreamRefused(texts.address_rejected);
    },
    async remove(name, signal) {
      const { status } = await askApi(options, { method: 'DELETE', path: query({ src: name }), signal });
      if (status !== 404 && status !== file_unwritten) expectOk(status);
    },
    whepUrl: (name) => below(options.viewer_url, whepPath(name)),
    watch: async (name, offer, signal) => postOffer(options, { path: `/${whepPath(name)}`, offer, signal }),
    // Its answers to viewers have no `Location` (internal/webrtc/server.go): it notices by itself that a viewer has left.
    async leave({ resource }, signal) {
      if (resource !== null) await deleteViewing(options, resource, signal);
    },
  };
}

function whepPath(name: string): string {
  return `api/webrtc?${new URLSearchParams({ src: name }).toString()}`;
}

function expectOk(status: number): void {
  if (status === 401 || status === 403) {
    throw new Error(texts.api_refused_login(status));
  }
  if (status < 200 || status > 299) throw new Error(texts.http_status(status, ''));
}
