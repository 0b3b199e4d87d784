/** A media server that follows MediaMTX's control API (v3) and WHEP, on loopback; it sends a made-up picture to its viewers. */
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
  /** Closes the ports and forgets what the API has added. */
  stop(): Promise<void>;
  /** Listens again on the same ports, with no paths. */
  start(): Promise<void>;
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
    const [, name = '', verb] = new URL(request.url ?? '/', 'http://localhost').pathname.split('/');
    if (verb !== 'whep' || request.method !== 'POST') return void response.writeHead(405).end();
    if (!fake.paths.has(name)) return void response.writeHead(404).end();
    const offer = await textOf(request);
    const peer = new RTCPeerConnection({ codecs: { video: [h264] }, iceServers: [] });
    peers.add(peer);
    const track = new MediaStreamTrack({ kind: 'video' });
    peer.addTrack(track);
    await peer.setRemoteDescription({ type: 'offer', sdp: offer });
    await peer.setLocalDescription(await peer.createAnswer());
    let sequence = 0;
    timers.add(setInterval(() => track.writeRtp(rtpPacket((sequence += 1))), 20));
    response.writeHead(201, { 'content-type': 'application/sdp', location: `/${name}/whep/1` });
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
  const answer = (status: number, body: object): void => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  };
  fake.requests.push(`${request.method} ${request.url}`);
  const expected = fake.credentials && `Basic ${Buffer.from(fake.credentials).toString('base64')}`;
  if (expected && request.headers.authorization !== expected) return answer(401, { error: 'authentication' });
  const asked = /^\/v3\/config\/paths\/(get|replace|delete)\/(.+)$/u.exec(request.url ?? '');
  const [, verb = '', name = ''] = asked ?? [];
  if (methods[verb] !== request.method) return answer(404, { status: 'error', error: 'not found' });
  answerPath(fake, { verb, name, body: await textOf(request) }, answer);
}

const methods: Readonly<Record<string, string>> = { get: 'GET', replace: 'POST', delete: 'DELETE' };

function answerPath(
  fake: FakeMediaMtx,
  { verb, name, body }: { readonly verb: string; readonly name: string; readonly body: string },
  answer: (status: number, body: object) => void,
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
