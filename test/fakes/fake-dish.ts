/** A Starlink dish: a gRPC server over HTTP/2 in the clear on the loopback, with an encoder of its own, that misbehaves on command. */
import { once } from 'node:events';
import { createServer, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import { freePort } from '../support/ports.ts';

/** How the next answers come; `hang`: never, `garbage`: no Protocol Buffers, `router`: the answer of another device,
 * `farewell`: a connection that ends in good order after one answer. */
export type DishMood =
  | 'well'
  | 'hang'
  | 'garbage'
  | 'huge'
  | 'cut short'
  | 'no status'
  | 'half closed'
  | 'reset'
  | 'not found'
  | 'compressed'
  | 'failing'
  | 'unimplemented'
  | 'router'
  | 'farewell';

/** What the dish is up to; tests change it at any time. */
export interface DishState {
  mood: DishMood;
  /** Cause of an outage. */
  outage: number | undefined;
  disablement: number;
  alerts: number[];
  uptime_s: number;
  /** The newest last, one each second since it booted; the ring is filled from it. */
  samples: { drop: number; latency_ms: number }[];
  hasHistory: boolean;
  /** What comes of reboot and stow: `ignored` is accepted without an effect, `deaf` gives no answer but the effect. */
  orders: 'obeyed' | 'refused' | 'ignored' | 'deaf';
  /** `in band`: refused inside an answer that gRPC calls a success. */
  location: 'allowed' | 'denied' | 'denied in band' | 'unknown';
  lat: number;
  lon: number;
  source: number;
  gps_valid: boolean;
}

export const refused_text = 'Permission denied';
export const ring_length = 900;
export const denied_text = 'GetLocation requests are not enabled on this device';

export interface FakeDish {
  readonly port: number;
  readonly state: DishState;
  /** How often each question came, by the number of its field. */
  readonly asked: ReadonlyMap<number, number>;
  /** Connections that are open now. */
  connections(): number;
  lose(): Promise<void>;
  restore(): Promise<void>;
}

export function dishState(): DishState {
  return {
    mood: 'well',
    outage: undefined,
    disablement: 1,
    alerts: [],
    uptime_s: 4_000,
    samples: Array.from({ length: 100 }, () => ({ drop: 0, latency_ms: 40 })),
    hasHistory: true,
    orders: 'obeyed',
    location: 'denied',
    lat: 59.3293,
    lon: 18.0686,
    source: 6,
    gps_valid: true,
  };
}

/** Listens on a port of its own, also after `lose` and `restore`. */
export async function startFakeDish(): Promise<FakeDish> {
  const state = dishState();
  const asked = new Map<number, number>();
  const sessions = new Set<ServerHttp2Session>();
  let server: Http2Server | undefined;
  const port = await freePort();

  const restore = async (): Promise<void> => {
    if (server) return;
    server = createServer();
    server.on('session', (session) => {
      sessions.add(session);
      session.on('error', () => undefined);
      session.on('close', () => sessions.delete(session));
    });
    server.on('stream', (stream) => void serve(stream, state, asked));
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
  };
  await restore();
  return {
    port,
    state,
    asked,
    connections: () => sessions.size,
    restore,
    async lose() {
      const closing = server;
      server = undefined;
      if (!closing) return;
      for (const session of sessions) session.destroy();
      await new Promise((resolve) => {
        closing.close(resolve);
      });
    },
  };
}

async function serve(stream: ServerHttp2Stream, state: DishState, asked: Map<number, number>): Promise<void> {
  stream.on('error', () => undefined);
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  await once(stream, 'end');
  // Its connection was cut off: nobody waits for the answer.
  if (stream.destroyed) return;
  // The request is one empty field: the tag in two bytes, a length of 0.
  const body = Buffer.concat(chunks).subarray(5);
  const question = ((body[0]! & 0x7f) | (body[1]! << 7)) >> 3;
  asked.set(question, (asked.get(question) ?? 0) + 1);
  if (question === 1001 || question === 2002) return serveOrder(stream, { question, body }, state);
  if (state.mood === 'farewell') stream.session?.close();
  const misbehave = moods[state.mood];
  if (misbehave) return misbehave(stream);
  const { status, reason, message } = answerTo(question, state);
  answer(stream, message && framed(message), { 'grpc-status': String(status), 'grpc-message': reason });
}

interface Order {
  readonly question: number;
  readonly body: Buffer;
}

/** A restart begins its uptime again; to stow is an outage of its own kind. */
function serveOrder(stream: ServerHttp2Stream, { question, body }: Order, state: DishState): void {
  if (state.orders === 'refused') {
    answer(stream, undefined, { 'grpc-status': '7', 'grpc-message': refused_text });
    return;
  }
  const isUnstow = body.length > 3;
  if (state.orders !== 'ignored' && question === 1001) state.uptime_s = 0;
  if (state.orders !== 'ignored' && question === 2002) state.outage = isUnstow ? undefined : 2;
  if (state.orders === 'deaf') stream.session?.destroy();
  else answer(stream, framed(bytes(question, Buffer.alloc(0))));
}

const moods: Readonly<Partial<Record<DishMood, (stream: ServerHttp2Stream) => void>>> = {
  hang: () => undefined,
  garbage: (stream) => answer(stream, framed(Buffer.from('ff'.repeat(50), 'hex'))),
  huge: (stream) => answer(stream, framed(Buffer.alloc(3_000_000))),
  'cut short': (stream) => answer(stream, framed(bytes(2004, bytes(1, 'ut1'))).subarray(0, 9)),
  'no status': (stream) => answer(stream, framed(bytes(2004, Buffer.alloc(0))), {}),
  'half closed': (stream) => {
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' });
    stream.write(framed(bytes(2004, Buffer.alloc(0))));
    stream.session?.destroy();
  },
  reset: (stream) => stream.close(2),
  'not found': (stream) => {
    stream.respond({ ':status': 404, 'content-type': 'text/html' });
    stream.end('<html>');
  },
  compressed: (stream) => {
    const frame = framed(bytes(2004, Buffer.alloc(0)));
    frame[0] = 1;
    answer(stream, frame);
  },
  unimplemented: (stream) => {
    const head = {
      ':status': 200,
      'content-type': 'application/grpc',
      'grpc-status': '12',
      'grpc-message': 'unknown%20method%20Handle',
    };
    stream.respond(head, { endStream: true });
  },
  failing: (stream) => {
    const head = {
      ':status': 200,
      'content-type': 'application/grpc',
      'grpc-status': '13',
      'grpc-message': 'out%20of%20order',
    };
    stream.respond(head, { endStream: true });
  },
  router: (stream) => answer(stream, framed(bytes(3004, bytes(3, 'router')))),
};

function answer(
  stream: ServerHttp2Stream,
  frame: Buffer | undefined,
  trailers: Readonly<Record<string, string>> = { 'grpc-status': '0' },
): void {
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers({ ...trailers }));
  stream.end(frame);
}

function answerTo(question: number, state: DishState): { status: number; reason: string; message?: Buffer } {
  const ok = (message: Buffer) => ({
    status: 0,
    reason: '',
    message: Buffer.concat([varint(3, 42), message]),
  });
  if (question === 1004) return ok(bytes(2004, statusOf(state)));
  if (question === 1007 && state.hasHistory) return ok(bytes(2006, historyOf(state)));
  if (question !== 1017) return { status: 12, reason: 'unimplemented' };
  if (state.location === 'denied') return { status: 7, reason: denied_text };
  if (state.location === 'denied in band')
    return ok(bytes(2, Buffer.concat([varint(1, 7), bytes(2, denied_text)])));
  const lla = Buffer.concat([double(1, state.lat), double(2, state.lon), double(3, 68.4)]);
  const place = state.location === 'unknown' ? Buffer.alloc(0) : bytes(1, lla);
  return ok(bytes(1017, Buffer.concat([place, varint(3, state.source), double(4, 3)])));
}

function statusOf(state: DishState): Buffer {
  const lost = state.outage === undefined ? 0 : 1;
  return Buffer.concat([
    bytes(
      1,
      Buffer.concat([
        bytes(1, 'ut01000000-0000'),
        bytes(2, 'rev4_prod1'),
        bytes(3, '2026.06.22.mr1'),
        bytes(4, 'SE'),
      ]),
    ),
    bytes(2, varint(1, state.uptime_s)),
    float(1003, lost),
    bytes(1004, Buffer.concat([float(1, 0.0125), varint(5, state.outage === 6 ? 1 : 0)])),
    bytes(1005, Buffer.concat(state.alerts.map((number) => varint(number, 1)))),
    float(1007, 42_000_000),
    float(1008, 6_000_000),
    // What firmware since the end of 2024 says, whatever the latency is.
    float(1009, 0),
    ...(state.outage === undefined
      ? []
      : [bytes(1014, Buffer.concat([varint(1, state.outage), varint(3, 1_000)]))]),
    bytes(1015, Buffer.concat([varint(1, state.gps_valid ? 1 : 0), varint(2, 12)])),
    varint(1024, state.disablement),
    // Of a later firmware: to be skipped.
    bytes(1099, bytes(1, 'unknown')),
    double(1100, 1),
  ]);
}

/** Places of the ring that were never written hold what a careless reader would take for samples. */
function historyOf({ samples }: DishState): Buffer {
  const ring = Array.from({ length: ring_length }, () => ({ drop: 0, latency_ms: 999 }));
  samples.forEach((sample, index) => {
    ring[index % ring_length] = sample;
  });
  const floats = (values: readonly number[]): Buffer => {
    const packed = Buffer.alloc(values.length * 4);
    values.forEach((value, index) => packed.writeFloatLE(value, index * 4));
    return packed;
  };
  return Buffer.concat([
    varint(1, samples.length),
    bytes(1001, floats(ring.map(({ drop }) => drop))),
    bytes(1002, floats(ring.map(({ latency_ms }) => latency_ms))),
    bytes(1003, floats(ring.map(() => 1e6))),
  ]);
}

export function bytes(field: number, content: Buffer | string): Buffer {
  const body = Buffer.from(content);
  return Buffer.concat([number(field * 8 + 2), number(body.length), body]);
}

export function varint(field: number, value: number): Buffer {
  return Buffer.concat([number(field * 8), number(value)]);
}

export function float(field: number, value: number): Buffer {
  const body = Buffer.alloc(4);
  body.writeFloatLE(value);
  return Buffer.concat([number(field * 8 + 5), body]);
}

export function double(field: number, value: number): Buffer {
  const body = Buffer.alloc(8);
  body.writeDoubleLE(value);
  return Buffer.concat([number(field * 8 + 1), body]);
}

function number(value: number): Buffer {
  const groups: number[] = [];
  let rest = BigInt(value);
  while (rest >= 128n) {
    groups.push(Number(rest & 127n) | 128);
    rest >>= 7n;
  }
  return Buffer.from([...groups, Number(rest)]);
}

function framed(message: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}
