/** MediaMTX by its control API (v3). Paths that were added by the API are gone when it restarts, so they are looked for again. */
import { z } from 'zod';
import { type ApiAccess, type ApiAnswer, askApi } from './api-request.ts';
import { below, postOffer } from './offer.ts';
import { type MediaServer, type Stream, StreamRefused } from './server.ts';
import { texts } from './texts.ts';

export interface MediaServerOptions extends ApiAccess {
  /** Where viewers reach the server, such as `http://192.168.1.1:8889`. */
  readonly viewer_url: string;
  /** STUN and TURN servers for its own side of the connections; left out, or none: those of its own configuration stay. */
  readonly ice_servers?: readonly IceServer[] | undefined;
  /** Left out: it records nothing, and connects to a camera only for viewers. */
  readonly recording?: { readonly kept_minutes: number } | undefined;
}

/** As `webrtcICEServers2` of MediaMTX. */
export interface IceServer {
  readonly url: string;
  readonly username: string;
  readonly password: string;
}

const pathConfig = z.looseObject({
  source: z.string(),
  sourceOnDemand: z.boolean().optional(),
  record: z.boolean().optional(),
});
const iceConfig = z.looseObject({
  webrtcICEServers2: z
    .array(z.looseObject({ url: z.string(), username: z.string().nullish(), password: z.string().nullish() }))
    .nullish(),
});
const count = z.number().optional();
/** api/openapi.yaml of MediaMTX, WebRTCSession; the second three are the older names. */
const session = z.looseObject({
  id: z.string(),
  outboundBytes: count,
  outboundRTPPackets: count,
  outboundRTCPPackets: count,
  bytesSent: count,
  rtpPacketsSent: count,
  rtcpPacketsSent: count,
});
const sessions = z.looseObject({ items: z.array(session) });
/** Of IPv4 and UDP, which the server does not count and the link does: a tenth of small packets. */
const headers_bytes = 28;
/** The list comes in pages of 100 by default. */
const sessions_path = '/v3/webrtcsessions/list?itemsPerPage=1000';
const refusal = z.looseObject({ error: z.string() });

/** The server connects to a camera on demand, with the first viewer: most cameras have none most of the time. */
const on_demand = {
  sourceOnDemand: true,
  sourceOnDemandStartTimeout: '10s',
  sourceOnDemandCloseAfter: '10s',
};
/** Always, where it records: a recording alone is no reader. Only fMP4 can be played back. */
const recorded = ({ kept_minutes }: { readonly kept_minutes: number }) => ({
  sourceOnDemand: false,
  record: true,
  recordFormat: 'fmp4',
  recordSegmentDuration: '60s',
  recordDeleteAfter: `${kept_minutes}m`,
});

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

  const whepUrl = (name: string): string => below(options.viewer_url, `${name}/whep`);

  return {
    name: 'MediaMTX',
    async has({ name, rtsp_url }: Stream, signal) {
      const { status, body } = await ask('GET', 'get', { name, signal });
      if (status === 404) return false;
      expectOk(status, body);
      const { data } = pathConfig.safeParse(body);
      if (data?.source !== rtsp_url) return false;
      // Its own configuration may record whatever is watched.
      return options.recording ? data.record === true && !data.sourceOnDemand : data.sourceOnDemand === true;
    },
    async put({ name, rtsp_url }, signal) {
      // `add` refuses what is there and `patch` what is not; `replace` takes both.
      const { status, body } = await ask('POST', 'replace', {
        name,
        signal,
        body: {
          source: rtsp_url,
          rtspTransport: 'tcp',
          ...(options.recording ? recorded(options.recording) : on_demand),
        },
      });
      if (status === 400) throw new StreamRefused(refusal.safeParse(body).data?.error ?? texts.no_reason);
      expectOk(status, body);
    },
    async remove(name, signal) {
      const { status, body } = await ask('DELETE', 'delete', { name, signal });
      if (status !== 404) expectOk(status, body);
    },
    whepUrl,
    // Only when they differ: a change of them disconnects every viewer (bluenviron/mediamtx#2554).
    async prepare(signal) {
      const wanted = options.ice_servers ?? [];
      if (wanted.length === 0) return;
      const { status, body } = await askApi(options, {
        method: 'GET',
        path: '/v3/config/global/get',
        signal,
      });
      expectOk(status, body);
      const known = (iceConfig.safeParse(body).data?.webrtcICEServers2 ?? []).map((each) => ({
        url: each.url,
        username: each.username ?? '',
        password: each.password ?? '',
      }));
      if (JSON.stringify(known) === JSON.stringify(wanted)) return;
      const patched = await askApi(options, {
        method: 'PATCH',
        path: '/v3/config/global/patch',
        body: { webrtcICEServers2: wanted },
        signal,
      });
      expectOk(patched.status, patched.body);
    },
    watch: async (name, offer, signal) =>
      // Viewers have no login for the API.
      postOffer({ api_url: options.viewer_url }, { path: whepUrl(name), offer, signal }),
    // Not by DELETE of its `Location`, which leads elsewhere behind a proxy with a path of its own (open-nvr/open-nvr#487).
    async leave({ session }, signal) {
      // GET is answered 404 (bluenviron/mediamtx#4228).
      const path = `/v3/webrtcsessions/kick/${encodeURIComponent(session ?? '')}`;
      const { status, body } = await askApi(options, { method: 'POST', path, signal });
      if (status !== 404) expectOk(status, body);
    },
    async sent(signal) {
      const { status, body } = await askApi(options, { method: 'GET', path: sessions_path, signal });
      expectOk(status, body);
      return new Map(sessions.parse(body).items.map((each) => [each.id, bytesOnLink(each)]));
    },
  };
}

function bytesOnLink(each: z.output<typeof session>): number {
  const rtp_packets = each.outboundRTPPackets ?? each.rtpPacketsSent ?? 0;
  const rtcp_packets = each.outboundRTCPPackets ?? each.rtcpPacketsSent ?? 0;
  return (each.outboundBytes ?? each.bytesSent ?? 0) + (rtp_packets + rtcp_packets) * headers_bytes;
}

function expectOk(status: number, body: unknown): void {
  if (status === 401 || status === 403) {
    throw new Error(texts.api_refused_login(status));
  }
  if (status < 200 || status > 299) {
    throw new Error(texts.http_status(status, refusal.safeParse(body).data?.error ?? ''));
  }
}
