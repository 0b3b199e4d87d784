/**
 * A media server that follows MediaMTX's control API (v3, api/openapi.yaml) and its WHEP (internal/servers/webrtc/http_server.go), on loopback;
 * it sends a made-up picture to its viewers.
 */
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { MediaStreamTrack, RTCPeerConnection, RTCRtpCodecParameters } from 'werift';
import { freePort } from '../../support/ports.ts';

export interface FakeMediaMtx {
  readonly api_url: string;
  readonly viewer_url: string;
  /** Configurations of the paths, by name. */
  readonly paths: Map<string, Record<string, unknown>>;
  /** `METHOD path` of every request to the API. */
  readonly requests: string[];
  /** Paths for which `replace` answers 400 with this reason. */
  refusal: string | undefined;
  /** Basic credentials that the API asks for, `user:password`. */
  credentials: string | undefined;
  /** Viewers, by the id that the API has. */
  readonly sessions: Map<string, FakeSession>;
  /** The next offers are answered with this status and error. */
  whep_refusal: { readonly status: number; readonly error: string } | undefined;
  /** Global configuration: what was patched. */
  readonly global: Record<string, unknown>;
  /** Closes the ports and forgets what the API has added. */
  stop(): Promise<void>;
  /** Listens again on the same ports, with no paths. */
  start(): Promise<void>;
}

interface FakeSession {
  readonly id: string;
  /** The end of its address. */
  readonly secret: string;
  readonly path: string;
  bytesSent: number;
  readonly end: () => void;
}

const h264 = new RTCRtpCodecParameters({
  mimeType: 'video/H264',
  clockRate: 90_000,
  payloadType: 96,
  parameters: 'packetization-mode=1;profile-level-id=42e01f',
});

export async function startFakeMediaMtx(): Promise<FakeMediaMtx> {
  const peers = new Set<RTCPeerConnection>();
  const timers = new Set<NodeJS.Timeout>();
  let servers: Server[] = [];
  const ports = [await freePort(), await freePort()] as const;

  const fake: FakeMediaMtx = {
    get api_url() {
      return `http://127.0.0.1:${ports[0]}`;
    },
    get viewer_url() {
      return `http://127.0.0.1:${ports[1]}`;
    },
    paths: new Map(),
    sessions: new Map(),
    whep_refusal: undefined,
    global: {},
    requests: [],
    refusal: undefined,
    credentials: undefined,
    async stop() {
      for (const timer of timers) clearInterval(timer);
      await Promise.all([...peers].map(async (peer) => peer.close()));
      peers.clear();
      for (const server of servers) server.closeAllConnections();
      await Promise.all(
        servers.map(async (server) => new Promise<void>((resolve) => server.close(() => resolve()))),
      );
      fake.paths.clear();
      fake.sessions.clear();
      delete fake.global['webrtcICEServers2'];
      servers = [];
    },
    async start() {
      servers = [
        createServer((request, response) => void answerApi(fake, request, response)),
        createServer((request, response) => void answerViewer(request, response)),
      ];
      await Promise.all(servers.map(async (server, i) => listen(server, ports[i] ?? 0)));
    },
  };

  const answerViewer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const [, name = '', verb, secret] = new URL(request.url ?? '/', 'http://localhost').pathname.split('/');
    const refusal = whepRefusal(fake, { request, name, verb, secret });
    if (refusal) {
      const [status, error] = refusal;
      const body = status < 300 ? { status: 'ok' } : { status: 'error', error };
      return void response
        .writeHead(status, { 'content-type': 'application/json; charset=utf-8' })
        .end(JSON.stringify(body));
    }
    const offer = await textOf(request);
    const peer = new RTCPeerConnection({ codecs: { video: [h264] }, iceServers: [] });
    peers.add(peer);
    const track = new MediaStreamTrack({ kind: 'video' });
    peer.addTrack(track);
    await peer.setRemoteDescription({ type: 'offer', sdp: offer });
    await peer.setLocalDescription(await peer.createAnswer());
    let sequence = 0;
    const timer = setInterval(() => {
      const packet = rtpPacket((sequence += 1));
      track.writeRtp(packet);
      session.bytesSent += packet.length;
    }, 20);
    timers.add(timer);
    const id = randomUUID();
    const session: FakeSession = {
      id,
      secret: randomUUID(),
      path: name,
      bytesSent: 0,
      end() {
        fake.sessions.delete(id);
        clearInterval(timer);
        void peer.close();
      },
    };
    fake.sessions.set(id, session);
    peer.connectionStateChange.subscribe((state) => {
      if (state === 'failed' || state === 'closed') session.end();
    });
    response.writeHead(201, {
      'content-type': 'application/sdp',
      'access-control-expose-headers': 'ETag, ID, Accept-Patch, Link, Location',
      id,
      etag: '*',
      'accept-patch': 'application/trickle-ice-sdpfrag',
      location: `/${name}/whep/${session.secret}`,
    });
    response.end(peer.localDescription?.sdp);
  };

  await fake.start();
  return fake;
}

async function answerApi(
  fake: FakeMediaMtx,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const answer: Answer = (status, body) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  };
  fake.requests.push(`${request.method} ${request.url}`);
  const expected = fake.credentials && `Basic ${Buffer.from(fake.credentials).toString('base64')}`;
  if (expected && request.headers.authorization !== expected) return answer(401, { error: 'authentication' });
  if (answerSessions(fake, request, answer)) return;
  if (request.url?.startsWith('/v3/config/global/')) return answerGlobal(fake, request, answer);
  const asked = /^\/v3\/config\/paths\/(get|replace|delete)\/(.+)$/u.exec(request.url ?? '');
  const [, verb = '', name = ''] = asked ?? [];
  if (methods[verb] !== request.method) return answer(404, { status: 'error', error: 'not found' });
  answerPath(fake, { verb, name, body: await textOf(request) }, answer);
}

type Answer = (status: number, body: object) => void;

/** Ends the viewer of a DELETE, too. */
function whepRefusal(
  fake: FakeMediaMtx,
  {
    request,
    name,
    verb,
    secret,
  }: {
    readonly request: IncomingMessage;
    readonly name: string;
    readonly verb: string | undefined;
    readonly secret: string | undefined;
  },
): readonly [status: number, error: string] | undefined {
  if (verb === 'whep' && request.method === 'DELETE') {
    const session = [...fake.sessions.values()].find((each) => each.secret === secret);
    session?.end();
    return session ? [200, ''] : [404, 'session not found'];
  }
  if (verb !== 'whep' || request.method !== 'POST') return [405, 'method not allowed'];
  if (request.headers['content-type'] !== 'application/sdp') return [400, 'invalid Content-Type'];
  if (fake.whep_refusal) return [fake.whep_refusal.status, fake.whep_refusal.error];
  return fake.paths.has(name) ? undefined : [404, `no stream is available on path '${name}'`];
}

/** Whether it was about viewers. */
function answerSessions(fake: FakeMediaMtx, { url = '', method }: IncomingMessage, answer: Answer): boolean {
  if (url.startsWith('/v3/webrtcsessions/list')) {
    const items = Array.from(fake.sessions.values(), ({ id, path, bytesSent }) => ({
      id,
      path,
      peerConnectionEstablished: true,
      state: 'read',
      outboundBytes: bytesSent,
      outboundRTPPackets: 0,
      outboundRTCPPackets: 0,
      bytesSent,
    }));
    answer(200, { itemCount: items.length, pageCount: 1, items });
    return true;
  }
  const [, id = ''] = /^\/v3\/webrtcsessions\/kick\/(.+)$/u.exec(url) ?? [];
  if (id === '' || method !== 'POST') return false;
  const session = fake.sessions.get(id);
  session?.end();
  answer(session ? 200 : 404, session ? { status: 'ok' } : { status: 'error', error: 'session not found' });
  return true;
}

async function answerGlobal(fake: FakeMediaMtx, request: IncomingMessage, answer: Answer): Promise<void> {
  if (request.method !== 'PATCH') return answer(200, { webrtcICEServers2: [], ...fake.global });
  Object.assign(fake.global, JSON.parse(await textOf(request)));
  // As a real one does (bluenviron/mediamtx#2554).
  for (const session of fake.sessions.values()) session.end();
  return answer(200, { status: 'ok' });
}

const methods: Readonly<Record<string, string>> = { get: 'GET', replace: 'POST', delete: 'DELETE' };

function answerPath(
  fake: FakeMediaMtx,
  { verb, name, body }: { readonly verb: string; readonly name: string; readonly body: string },
  answer: Answer,
): void {
  if (verb === 'replace') {
    if (fake.refusal) return answer(400, { status: 'error', error: fake.refusal });
    fake.paths.set(name, { name, ...(JSON.parse(body) as object) });
    return answer(200, { status: 'ok' });
  }
  const known = fake.paths.get(name);
  if (!known) return answer(404, { status: 'error', error: 'path configuration not found' });
  if (verb === 'delete') fake.paths.delete(name);
  return answer(200, verb === 'get' ? known : { status: 'ok' });
}

/** RTP version 2, payload type 96, a single H.264 NAL unit of type IDR. */
function rtpPacket(sequence: number): Buffer {
  const packet = Buffer.alloc(12 + 100, 0x65);
  packet.writeUInt8(0x80, 0);
  packet.writeUInt8(0x80 | 96, 1);
  packet.writeUInt16BE(sequence & 0xff_ff, 2);
  packet.writeUInt32BE(sequence * 1_800, 4);
  packet.writeUInt32BE(0x1234_5678, 8);
  return packet;
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

async function listen(server: Server, port: number): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
}
