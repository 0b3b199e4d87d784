/** Client of the control socket of the daemon on this machine. */
import { request, type IncomingMessage } from 'node:http';
import { createInterface } from 'node:readline';
import { z } from 'zod';
import { commandDefinition } from '../../contract/assets.ts';
import { systemReason } from '../../platform/errors.ts';
import { texts } from './texts.ts';
import {
  apiError,
  assetForgotten,
  bufferReport,
  healthReport,
  logLevels,
  recentLog,
  quarantinedBody,
  quarantinedMessage,
  quarantineOutcome,
  statusReport,
  tailLine,
  taskView,
  type LogLevelRequest,
  type TailLine,
  type TaskRequest,
} from './api.ts';

/** No daemon answers on the socket. The command line prints the sentence and exits with 69 (EX_UNAVAILABLE). */
export class DaemonUnavailable extends Error {
  override readonly name = 'DaemonUnavailable';
}

/** The daemon refuses; the message is its sentence. */
export class DaemonRefused extends Error {
  override readonly name = 'DaemonRefused';
}

export type LocalClient = ReturnType<typeof localClient>;

const answer_timeout_ms = 10_000;
const answer_bytes_max = 50_000_000;

/** A client of the daemon at `socket`. Its calls reject with `DaemonUnavailable` or `DaemonRefused`. */
export function localClient(socket: string, signal: AbortSignal) {
  const ask = async <S extends z.ZodType>(schema: S, path: string, body?: object): Promise<z.output<S>> => {
    const response = await send(socket, path, body, signal);
    const text = await readAll(response);
    return schema.parse(JSON.parse(text));
  };
  const selection = (ids: readonly number[] | undefined): object => (ids ? { ids } : {});
  return {
    status: async () => ask(statusReport, '/status'),
    health: async () => ask(healthReport, '/health'),
    buffer: async () => ask(bufferReport, '/buffer'),
    quarantine: async () => ask(z.array(quarantinedMessage), '/buffer/quarantine'),
    quarantined: async (id: number) => ask(quarantinedBody, `/buffer/quarantine/${id}`),
    /** Answers how many rows were put back. */
    retryQuarantined: async (ids?: readonly number[]) =>
      (await ask(quarantineOutcome, '/buffer/quarantine/retry', selection(ids))).rows,
    /** Answers how many rows were discarded. */
    discardQuarantined: async (ids?: readonly number[]) =>
      (await ask(quarantineOutcome, '/buffer/quarantine/discard', selection(ids))).rows,
    dispatch: async (task: TaskRequest) => ask(taskView, '/tasks', task),
    tasks: async () => ask(z.array(taskView), '/tasks'),
    task: async (id: string) => ask(taskView, `/tasks/${encodeURIComponent(id)}`),
    /** The commands of an asset: id, key or unique name. */
    commands: async (asset: string) =>
      ask(z.array(commandDefinition), `/commands?${new URLSearchParams({ asset }).toString()}`),
    /** `asset`: id, key or unique name. */
    forgetAsset: async (asset: string) => ask(assetForgotten, '/assets/forget', { asset }),
    logLevels: async () => ask(logLevels, '/log-levels'),
    /** The last lines of the log, JSON, oldest first. */
    recentLog: async () => ask(recentLog, '/log'),
    /** Answers the levels that hold then. */
    changeLogLevels: async (request: LogLevelRequest) => ask(logLevels, '/log-levels', request),
    /** Lines until the signal aborts or the daemon ends. */
    tail: (filter: TailFilter) => tailLines(socket, filter, signal),
  };
}

interface TailFilter {
  readonly asset?: string | undefined;
  readonly feed?: string | undefined;
}

async function* tailLines(
  socket: string,
  { asset, feed }: TailFilter,
  signal: AbortSignal,
): AsyncGenerator<TailLine> {
  const query = new URLSearchParams({ ...(asset ? { asset } : {}), ...(feed ? { feed } : {}) });
  const response = await send(socket, `/tail?${query.toString()}`, undefined, signal);
  response.setTimeout(0);
  try {
    for await (const line of createInterface({ input: response })) {
      if (line !== '') yield tailLine.parse(JSON.parse(line));
    }
  } catch (error) {
    if (!signal.aborted && !response.destroyed) throw error;
  } finally {
    response.destroy();
  }
}

/** Sends a request and answers the response's head once it is a success. */
async function send(
  socket: string,
  path: string,
  body: object | undefined,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = request({
      socketPath: socket,
      agent: false,
      path,
      method: body ? 'POST' : 'GET',
      headers: body ? { 'content-type': 'application/json' } : {},
      timeout: answer_timeout_ms,
      signal,
    });
    sent.once('response', resolve);
    sent.once('timeout', () => sent.destroy(new Error(`no answer within ${answer_timeout_ms / 1000} s`)));
    sent.once('error', (error) => reject(unavailable(socket, error)));
    sent.end(body ? JSON.stringify(body) : undefined);
  });
  if ((response.statusCode ?? 500) < 300) return response;
  throw new DaemonRefused(refusal(await readAll(response)));
}

function unavailable(socket: string, error: unknown): DaemonUnavailable {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  const sentence =
    code === 'ENOENT' || code === 'ECONNREFUSED'
      ? texts.not_running(socket, systemReason(error))
      : code === 'EACCES' || code === 'EPERM'
        ? texts.not_allowed(socket, systemReason(error))
        : texts.no_answer(socket, systemReason(error));
  return new DaemonUnavailable(sentence, { cause: error });
}

function refusal(text: string): string {
  try {
    return apiError.parse(JSON.parse(text)).error;
  } catch {
    return `the daemon answered: ${text.slice(0, 200)}`;
  }
}

async function readAll(response: IncomingMessage): Promise<string> {
  response.setEncoding('utf8');
  let text = '';
  for await (const chunk of response) {
    text += String(chunk);
    if (text.length > answer_bytes_max) throw new DaemonRefused('the answer of the daemon is too large');
  }
  return text;
}
