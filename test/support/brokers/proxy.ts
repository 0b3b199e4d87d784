/** A TCP proxy on the loopback that plays the bad link: slow, narrow, silent, cut, refused, kicked. */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { TimedQueue } from '../timed-queue.ts';

export interface LinkShape {
  /** One way, milliseconds. */
  readonly delay_up_ms?: number;
  readonly delay_down_ms?: number;
  /** Bytes per second towards the server; unlimited when left out. */
  readonly rate_up_bytes?: number;
}

export interface ProxyCounters {
  accepted: number;
  up_bytes: number;
  down_bytes: number;
}

/** `kick`: each connection is ended as soon as the server's first answer has passed, which is a broker's CONNACK. */
export type Admission = 'pass' | 'refuse' | 'kick';

export interface Proxy {
  readonly port: number;
  readonly counters: Readonly<ProxyCounters>;
  setAdmission(admission: Admission): void;
  /** Nothing passes any more in either direction, and nobody is told. New connections meet the same silence. */
  stall(): void;
  /** Ends the silence: what was held back passes, and what was closed meanwhile is closed. */
  resume(): void;
  /** Resets every connection; new ones are served. */
  cut(): void;
  close(): Promise<void>;
}

/** Bytes that wait for the narrow link before the sender is held back: the buffer of a satellite modem. */
const shaper_bytes_max = 32_768;
/** Bytes on their way over a long link: far above what the tests have in flight. */
const flight_bytes_max = 16_777_216;
const segment_bytes = 1_400;

interface Route {
  readonly near: Socket;
  readonly far: Socket;
  readonly pipes: readonly Pipe[];
  closed: boolean;
}

/** `listen_port` 0: a free one. */
export async function startProxy(
  target_port: number,
  shape: LinkShape = {},
  listen_port = 0,
  listen_host = '127.0.0.1',
): Promise<Proxy> {
  const counters: ProxyCounters = { accepted: 0, up_bytes: 0, down_bytes: 0 };
  const routes = new Set<Route>();
  let admission: Admission = 'pass';
  let stalled = false;

  const end = (route: Route): void => {
    route.closed = true;
    if (stalled) return;
    route.near.resetAndDestroy();
    // A reset of what the other end has reset meanwhile leaves the handle open.
    route.far.destroy();
    for (const pipe of route.pipes) pipe.clear();
    routes.delete(route);
  };
  const open = (near: Socket): void => {
    counters.accepted += 1;
    near.on('error', () => undefined);
    if (admission === 'refuse') {
      near.resetAndDestroy();
      return;
    }
    const far = connect({ port: target_port, host: '127.0.0.1', noDelay: true });
    far.on('error', () => undefined);
    const answered = (bytes: number): void => {
      counters.down_bytes += bytes;
      // An end, not a reset: a reset could overtake the answer.
      if (admission === 'kick') near.end();
    };
    const pipes = [
      joinSockets(
        near,
        far,
        { delay_ms: shape.delay_up_ms ?? 0, rate_bytes: shape.rate_up_bytes },
        (bytes) => {
          counters.up_bytes += bytes;
        },
      ),
      joinSockets(far, near, { delay_ms: shape.delay_down_ms ?? 0, rate_bytes: undefined }, answered),
    ];
    const route: Route = { near, far, pipes, closed: false };
    routes.add(route);
    if (stalled) for (const pipe of pipes) pipe.hold();
    near.on('close', () => end(route));
    far.on('close', () => end(route));
  };

  const server = createServer({ noDelay: true }, open);
  server.listen(listen_port, listen_host);
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the proxy has no port');
  const cut = (): void => {
    stalled = false;
    for (const route of routes) end(route);
  };
  return {
    port: address.port,
    counters,
    setAdmission(next) {
      admission = next;
    },
    stall() {
      stalled = true;
      for (const route of routes) for (const pipe of route.pipes) pipe.hold();
    },
    resume() {
      stalled = false;
      for (const route of routes) {
        for (const pipe of route.pipes) pipe.go();
        if (route.closed) end(route);
      }
    },
    cut,
    async close() {
      cut();
      server.close();
      await once(server, 'close');
    },
  };
}

interface Pipe {
  hold(): void;
  go(): void;
  clear(): void;
}

/** Carries bytes one way: first through the narrow place, then over the distance. */
function joinSockets(
  from: Socket,
  to: Socket,
  shape: { readonly delay_ms: number; readonly rate_bytes: number | undefined },
  passed: (bytes: number) => void,
): Pipe {
  const { delay_ms, rate_bytes } = shape;
  let held = false;
  const breathe = (): void => {
    const full = narrow.bytes > shaper_bytes_max || distance.bytes > flight_bytes_max || to.writableNeedDrain;
    if (held || full) from.pause();
    else from.resume();
  };
  const distance = new TimedQueue((chunk) => {
    if (!to.destroyed) to.write(chunk, () => passed(chunk.length));
    breathe();
  });
  const narrow = new TimedQueue((chunk) => distance.push(chunk, performance.now() + delay_ms));
  let free_at_ms = 0;
  from.on('data', (data: Buffer) => {
    if (rate_bytes === undefined) {
      distance.push(data, performance.now() + delay_ms);
    } else {
      for (let at = 0; at < data.length; at += segment_bytes) {
        const segment = data.subarray(at, at + segment_bytes);
        free_at_ms = Math.max(free_at_ms, performance.now()) + (segment.length * 1000) / rate_bytes;
        narrow.push(segment, free_at_ms);
      }
    }
    breathe();
  });
  to.on('drain', breathe);
  return {
    hold() {
      held = true;
      narrow.hold();
      distance.hold();
      breathe();
    },
    go() {
      held = false;
      narrow.go();
      distance.go();
      breathe();
    },
    clear() {
      narrow.clear();
      distance.clear();
    },
  };
}
