/** The routes of the control socket: bodies are checked on the way in, refusals leave as sentences. */
import { z } from 'zod';
import { CommandRefused, messageOf } from '../errors.ts';
import { type LocalApi, logLevelRequest, quarantineSelection, taskRequest } from './api.ts';
import { type Answer, json, NotAnswered, type Routes } from './exchange.ts';
import { findAsset } from './find-asset.ts';
import { tailStream } from './tail-stream.ts';

export function localRoutes(api: LocalApi, signal: AbortSignal): Routes {
  return {
    'GET /status': async () => json(await api.report()),
    'GET /tail': ({ query }) => tailStream(api, query, signal),
    'GET /buffer': async () => json(await api.buffer()),
    'GET /buffer/quarantine': async () => json(await api.quarantine()),
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
    'POST /tasks': async ({ body }) => {
      const { asset, command, payload, deadline_s } = parse(taskRequest, await body());
      const { assets } = await api.report();
      const found = findAsset(assets, asset);
      if ('fault' in found) throw new NotAnswered(404, found.fault);
      return json(await api.dispatch({ asset_id: found.id, command, payload, deadline_s }), 201);
    },
  };
}

/** What a failed request is told. */
export function refusal(error: unknown): Answer {
  const status = error instanceof NotAnswered ? error.status : error instanceof CommandRefused ? 409 : 500;
  return json({ error: messageOf(error) }, status);
}

/** The body, or 400 with what is wrong with it. */
function parse<S extends z.ZodType>(schema: S, body: string): z.output<S> {
  let value: unknown;
  try {
    value = body === '' ? {} : JSON.parse(body);
  } catch (error) {
    throw new NotAnswered(400, `the body is no JSON: ${messageOf(error)}`);
  }
  const read = schema.safeParse(value);
  if (!read.success) throw new NotAnswered(400, z.prettifyError(read.error));
  return read.data;
}
