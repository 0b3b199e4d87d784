/** MediaMTX by its control API (v3). Paths that were added by the API are gone when it restarts, so they are looked for again. */
import { z } from 'zod';
import { type ApiAccess, type ApiAnswer, askApi } from './api-request.ts';
import { type MediaServer, type Stream, StreamRefused } from './server.ts';
import { texts } from './texts.ts';

export interface MediaServerOptions extends ApiAccess {
  /** Where viewers reach the server, such as `http://192.168.1.1:8889`. */
  readonly viewer_url: string;
}

const pathConfig = z.looseObject({ source: z.string(), sourceOnDemand: z.boolean().optional() });
const refusal = z.looseObject({ error: z.string() });

/** The server connects to a camera on demand, with the first viewer: most cameras have none most of the time. */
const on_demand = {
  sourceOnDemand: true,
  sourceOnDemandStartTimeout: '10s',
  sourceOnDemandCloseAfter: '10s',
  rtspTransport: 'tcp',
} as const;

export function mediaMtx(options: MediaServerOptions): MediaServer {
  const ask = async (
    method: 'GET' | 'POST' | 'DELETE',
    verb: 'get' | 'replace' | 'delete',
    { name, signal, body }: { readonly name: string; readonly signal: AbortSignal; readonly body?: object },
  ): Promise<ApiAnswer> =>
    askApi(options, {
      method,
      path: `/v3/config/paths/${verb}/${encodeURIComponent(name)}`,
      signal,
      ...(body ? { body } : {}),
    });

  return {
    name: 'MediaMTX',
    async has({ name, rtsp_url }: Stream, signal) {
      const { status, body } = await ask('GET', 'get', { name, signal });
      if (status === 404) return false;
      expectOk(status, body);
      const { data } = pathConfig.safeParse(body);
      return data?.source === rtsp_url && data.sourceOnDemand === true;
    },
    async put({ name, rtsp_url }, signal) {
      // `add` refuses what is there and `patch` what is not; `replace` takes both.
      const { status, body } = await ask('POST', 'replace', {
        name,
        signal,
        body: { source: rtsp_url, ...on_demand },
      });
      if (status === 400) throw new StreamRefused(refusal.safeParse(body).data?.error ?? texts.no_reason);
      expectOk(status, body);
    },
    async remove(name, signal) {
      const { status, body } = await ask('DELETE', 'delete', { name, signal });
      if (status !== 404) expectOk(status, body);
    },
    whepUrl: (name) => new URL(`/${name}/whep`, options.viewer_url).href,
  };
}

function expectOk(status: number, body: unknown): void {
  if (status === 401 || status === 403) {
    throw new Error(texts.api_refused_login(status));
  }
  if (status < 200 || status > 299) {
    throw new Error(texts.http_status(status, refusal.safeParse(body).data?.error ?? ''));
  }
}
