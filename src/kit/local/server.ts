/** The control socket: HTTP on a Unix socket of this machine, between the command line and the daemon. */
import { chmod, chown, mkdir, rm } from 'node:fs/promises';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { dirname } from 'node:path';
import { CommandRefused, messageOf } from '../../platform/errors.ts';
import { aborted, within } from '../../platform/time.ts';
import {
  assetRequest,
  type LocalApi,
  logLevelRequest,
  quarantineSelection,
  type TailLine,
  taskRequest,
} from './api.ts';
import { type Answer, answerBy, json, NotAnswered, type Routes } from './exchange.ts';
import { texts } from './texts.ts';
import { userOf } from '../../platform/linux/socket-user.ts';
import type { z } from 'zod';
import { readJson, request_limits } from '../../contract/bounded-json.ts';
import { firstFault } from '../../contract/first-fault.ts';
import { findAsset, isMeant } from './find-asset.ts';

export function localRoutes(api: LocalApi, signal: AbortSignal): Routes {
  return {
    'GET /status': async () => json(await api.report()),
    'GET /health': async () => json(await api.health()),
    'GET /tail': ({ query }) => tailStream(api, query, signal),
    'GET /buffer': async () => json(await api.buffer()),
    'GET /buffer/quarantine': async () => json(await api.quarantine()),
    'GET /buffer/quarantine/:id': async ({ id }) => {
      const message = await api.quarantined(Number(id));
      if (!message) throw new NotAnswered(404, `no message ${id} is in quarantine`);
      return json(message);
    },
    'POST /buffer/quarantine/retry': async ({ body }) => {
      const { ids } = parse(quarantineSelection, await body());
      return json({ rows: await api.retryQuarantined(ids) });
    },
    'POST /buffer/quarantine/discard': async ({ body }) => {
      const { ids } = parse(quarantineSelection, await body());
      return json({ rows: await api.discardQuarantined(ids) });
    },
    'GET /log': () => json(api.recentLog()),
    'GET /log-levels': () => json(api.logLevels()),
    'POST /log-levels': async ({ body }) => json(api.changeLogLevels(parse(logLevelRequest, await body()))),
    'GET /tasks': async () => json(await api.tasks()),
    'GET /tasks/:id': async ({ id }) => {
      const task = await api.task(id);
      if (!task) throw new NotAnswered(404, `there is no task ${id}`);
      return json(task);
    },
    'GET /commands': async ({ query }) => json(api.commands(await assetIdOf(api, query.get('asset') ?? ''))),
    'POST /assets/forget': async ({ body, socket }) => {
      const { asset } = parse(assetRequest, await body());
      return json(api.forgetAsset(await assetIdOf(api, asset), await userOf(socket)));
    },
    'POST /tasks': async ({ body, socket }) => {
      const { asset, command, payload, deadline_s } = parse(taskRequest, await body());
      const order = { asset_id: await assetIdOf(api, asset), command, payload, deadline_s };
      return json(await api.dispatch(order, await userOf(socket)), 201);
    },
  };
}

async function assetIdOf(api: LocalApi, words: string): Promise<string> {
  const { assets } = await api.report();
  const found = findAsset(assets, words);
  if ('fault' in found) throw new NotAnswered(404, found.fault);
  return found.id;
}

/** The reply to a failed request. */
export function refusal(error: unknown): Answer {
  const status = error instanceof NotAnswered ? error.status : error instanceof CommandRefused ? 409 : 500;
  return json({ error: messageOf(error) }, status);
}

/** The body, or 400 with what is wrong with it. */
function parse<S extends z.ZodType>(schema: S, body: string): z.output<S> {
  let value: unknown;
  try {
    value = body === '' ? {} : readJson(body, request_limits);
  } catch (error) {
    throw new NotAnswered(400, `the body is no JSON: ${messageOf(error)}`);
  }
  const read = schema.safeParse(value);
  if (!read.success) throw new NotAnswered(400, firstFault(read.error));
  return read.data;
}

/** Text that waits for a slow reader; further lines are skipped and counted. */
const waiting_bytes_max = 1_000_000;

/** An answer that ends when the reader goes or `signal` aborts. `asset` in the query is an id, a key or a name. */
function tailStream(api: Pick<LocalApi, 'tail'>, query: URLSearchParams, signal: AbortSignal): Answer {
  const [asset, feed] = [query.get('asset'), query.get('feed')];
  const content = (response: ServerResponse): void => {
    let skipped = 0;
    const write = (line: TailLine): void => void response.write(`${JSON.stringify(line)}\n`);
    // The empty line carries the head of the response to the reader before anything happens.
    response.write('\n');
    const unsubscribe = api.tail((message) => {
      if (asset !== null && !isMeant(message.asset, asset)) return;
      if (feed !== null && message.feed !== feed) return;
      if (response.writableLength >= waiting_bytes_max) {
        skipped += 1;
        return;
      }
      if (skipped > 0) write({ kind: 'skipped', lines: skipped });
      skipped = 0;
      write(message);
    });
    const end = (): void => void response.end();
    signal.addEventListener('abort', end, { once: true });
    response.once('close', () => {
      signal.removeEventListener('abort', end);
      unsubscribe();
    });
    if (signal.aborted) end();
  };
  return { content_type: 'application/x-ndjson', content };
}

interface ListenOptions {
  readonly socket: string;
  /** Group of the socket; the group of the process when undefined. */
  readonly gid: number | undefined;
  readonly signal: AbortSignal;
}

/** Only members of the socket's group may use it. */
const socket_mode = 0o660;
/** sockaddr_un holds 108 bytes with the final zero. */
const socket_path_bytes_max = 107;

/** Each connection may keep a megabyte waiting: a body, or a tail that is not read. */
const connections_max = 96;
/** For a whole request, longer than any client waits, also while the daemon stalls; a tail is an answer, and lasts. */
const request_ms = 30_000;
const check_every_ms = 2_000;

/** Answers that are under way may end in this time. */
const farewell_ms = 500;

/**
 * Listens until `signal` aborts; resolves once it listens, with a promise that resolves when the socket is closed and
 * removed. Rejects when another daemon answers on the socket, or when it cannot be created.
 */
export async function serveLocal(
  api: LocalApi,
  { socket, gid, signal }: ListenOptions,
): Promise<{ closed: Promise<void> }> {
  if (Buffer.byteLength(socket) > socket_path_bytes_max) {
    throw new Error(`the path of the control socket ${socket} is too long; choose a shorter runtime_dir`);
  }
  await mkdir(dirname(socket), { recursive: true });
  await refuseSecond(socket);
  await rm(socket, { force: true });
  const server = createServer(
    { requestTimeout: request_ms, headersTimeout: request_ms, connectionsCheckingInterval: check_every_ms },
    answerBy(localRoutes(api, signal), refusal),
  );
  server.maxConnections = connections_max;
  await listen(server, socket);
  if (gid !== undefined) await chown(socket, -1, gid);
  await chmod(socket, socket_mode);
  return { closed: closeOnAbort(server, socket, signal) };
}

async function listen(server: Server, socket: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) =>
      reject(new Error(`cannot create the control socket ${socket}: ${messageOf(error)}`, { cause: error })),
    );
    server.listen(socket, resolve);
  });
}

async function closeOnAbort(server: Server, socket: string, signal: AbortSignal): Promise<void> {
  await aborted(signal);
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  await within(farewell_ms, closed);
  server.closeAllConnections();
  await closed;
  await rm(socket, { force: true });
}

/** Rejects when another daemon answers on the socket; called before anything of this one starts. */
export async function refuseSecond(socket: string): Promise<void> {
  if (await isAnswered(socket)) throw new Error(texts.already_listening(socket));
}

/** Whether a process accepts connections: a socket that a killed daemon left behind refuses them. */
export async function isAnswered(socket: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(socket);
    const finish = (answered: boolean) => (): void => {
      probe.destroy();
      resolve(answered);
    };
    probe.once('connect', finish(true));
    probe.once('error', finish(false));
  });
}
