/** The routes of the control socket: bodies are checked on the way in, refusals leave as sentences. */
import { Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { HTTPException } from 'hono/http-exception';
import { z } from 'zod';
import { CommandRefused, messageOf } from '../errors.ts';
import { type LocalApi, logLevelRequest, quarantineSelection, taskRequest } from './api.ts';
import { findAsset } from './find-asset.ts';
import { tailStream } from './tail-stream.ts';

const body_bytes_max = 1_000_000;

export function localRoutes(api: LocalApi, signal: AbortSignal): Hono {
  const routes = new Hono();
  routes.use(bodyLimit({ maxSize: body_bytes_max }));
  routes.onError((error, context) => {
    const status =
      error instanceof HTTPException ? error.status : error instanceof CommandRefused ? 409 : 500;
    return context.json({ error: messageOf(error) }, status);
  });
  routes.notFound((context) =>
    context.json({ error: `there is no ${context.req.method} ${context.req.path}` }, 404),
  );

  routes.get('/status', async (context) => context.json(await api.report()));
  routes.get('/tail', (context) => {
    const { asset, feed } = context.req.query();
    return tailStream(api, { asset, feed }, AbortSignal.any([signal, context.req.raw.signal]));
  });
  routes.get('/buffer', async (context) => context.json(await api.buffer()));
  routes.get('/buffer/quarantine', async (context) => context.json(await api.quarantine()));
  routes.post('/buffer/quarantine/retry', async (context) => {
    const { ids } = parse(quarantineSelection, await context.req.text());
    return context.json({ rows: await api.retryQuarantined(ids) });
  });
  routes.post('/buffer/quarantine/discard', async (context) => {
    const { ids } = parse(quarantineSelection, await context.req.text());
    return context.json({ rows: await api.discardQuarantined(ids) });
  });

  routes.get('/log', (context) => context.json(api.recentLog()));
  routes.get('/log-levels', (context) => context.json(api.logLevels()));
  routes.post('/log-levels', async (context) =>
    context.json(api.changeLogLevels(parse(logLevelRequest, await context.req.text()))),
  );

  routes.get('/tasks', async (context) => context.json(await api.tasks()));
  routes.get('/tasks/:id', async (context) => {
    const task = await api.task(context.req.param('id'));
    if (!task) throw new HTTPException(404, { message: `there is no task ${context.req.param('id')}` });
    return context.json(task);
  });
  routes.post('/tasks', async (context) => {
    const { asset, command, payload, deadline_s } = parse(taskRequest, await context.req.text());
    const { assets } = await api.report();
    const found = findAsset(assets, asset);
    if ('fault' in found) throw new HTTPException(404, { message: found.fault });
    return context.json(await api.dispatch({ asset_id: found.id, command, payload, deadline_s }), 201);
  });
  return routes;
}

/** The body, or 400 with what is wrong with it. */
function parse<S extends z.ZodType>(schema: S, text: string): z.output<S> {
  let body: unknown;
  try {
    body = text === '' ? {} : JSON.parse(text);
  } catch (error) {
    throw new HTTPException(400, { message: `the body is no JSON: ${messageOf(error)}`, cause: error });
  }
  const read = schema.safeParse(body);
  if (!read.success) throw new HTTPException(400, { message: z.prettifyError(read.error) });
  return read.data;
}
