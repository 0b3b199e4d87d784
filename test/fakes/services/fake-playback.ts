/** The playback server of MediaMTX (api/playback.openapi.yaml, internal/playback of bluenviron/mediamtx), with the habits of real ones. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A recorded piece without a gap. */
interface Span {
  readonly start_ms: number;
  readonly seconds: number;
}

export interface FakePlayback {
  readonly url: string;
  /** By path. */
  readonly spans: Map<string, readonly Span[]>;
  /** Of a second. */
  bytes_per_s: number;
  /** `/list` names this many seconds more than there are (bluenviron/mediamtx 4711). */
  seconds_too_many: number;
  /** Within so many milliseconds before this time nothing is found (bluenviron/mediamtx 4276, 4533). */
  blind: { readonly before_ms: number; readonly ms: number } | undefined;
  /** The body begins, and never ends. */
  isEndless: boolean;
  /** `user:password` that it asks for. */
  credentials: string | undefined;
  /** Query of every `/get`. */
  readonly gets: URLSearchParams[];
  readonly stop: () => Promise<void>;
}

export async function startFakePlayback(): Promise<FakePlayback> {
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost');
    const expected = fake.credentials && `Basic ${Buffer.from(fake.credentials).toString('base64')}`;
    if (expected && request.headers.authorization !== expected) {
      response.setHeader('www-authenticate', 'Basic realm="mediamtx"');
      return error(response, 401, 'authentication error');
    }
    const spans = fake.spans.get(searchParams.get('path') ?? '');
    if (!spans) return error(response, 404, 'no recording segments found');
    return pathname === '/list'
      ? answerList(fake, spans, searchParams, response)
      : answerGet(fake, spans, searchParams, response);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const fake: FakePlayback = {
    url: `http://127.0.0.1:${port}`,
    spans: new Map(),
    bytes_per_s: 1_000,
    seconds_too_many: 0,
    blind: undefined,
    isEndless: false,
    credentials: undefined,
    gets: [],
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return fake;
}

function error(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ status: 'error', error: text }));
}

function answerList(
  { seconds_too_many, url }: FakePlayback,
  spans: readonly Span[],
  query: URLSearchParams,
  response: ServerResponse,
): void {
  const [from_ms, to_ms] = [Date.parse(query.get('start') ?? ''), Date.parse(query.get('end') ?? '')];
  const found = spans.flatMap(({ start_ms, seconds }) => {
    const start = Math.max(start_ms, from_ms);
    const end = Math.min(start_ms + (seconds + seconds_too_many) * 1_000, to_ms);
    const entry = {
      start: new Date(start).toISOString(),
      duration: (end - start) / 1_000,
      url: `${url}/get`,
    };
    return end > start ? [entry] : [];
  });
  if (found.length === 0) return error(response, 404, 'no recording segments found');
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(found));
}

function answerGet(
  fake: FakePlayback,
  spans: readonly Span[],
  query: URLSearchParams,
  response: ServerResponse,
): void {
  fake.gets.push(query);
  const start_ms = Date.parse(query.get('start') ?? '');
  const { blind, bytes_per_s, isEndless } = fake;
  const isBlind = blind && start_ms < blind.before_ms && start_ms >= blind.before_ms - blind.ms;
  const span = spans.find(
    (each) => start_ms >= each.start_ms && start_ms < each.start_ms + each.seconds * 1_000,
  );
  if (!span || isBlind) return error(response, 404, 'no recording segments found');
  // Up to the first gap (bluenviron/mediamtx 3510).
  const left_s = span.seconds - (start_ms - span.start_ms) / 1_000;
  const seconds = Math.min(Number(query.get('duration')), left_s);
  response.writeHead(200, { 'content-type': 'video/mp4', 'accept-ranges': 'none' });
  const bytes = Buffer.alloc(Math.round(seconds * bytes_per_s), 'v');
  if (isEndless) response.write(bytes);
  else response.end(bytes);
}
