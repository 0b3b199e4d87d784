/** Pictures of cameras, as JPEG: those that stay at the kit (decision 0028), and the small ones that come with alarms (0048). */
import { type OpenAPIHono, z } from '@hono/zod-openapi';
import { RequestProblem } from '../api/problem.ts';
import type { Service } from '../service.ts';
import { assetParams, type Env, readProblem, routesUnder } from './context.ts';
import { newRoutes } from './problems.ts';

export interface ServedPicture {
  readonly jpeg: Buffer;
  /** Unix time in milliseconds. */
  readonly taken_ms: number;
}

/**
 * Returns a picture of this asset that is not older than `age_max_ms`. Rejects with `RequestProblem`: `not-found` where there
 * is none, `unavailable` when it cannot be taken now.
 */
export type PictureSource = (asset_id: string, age_max_ms: number) => Promise<ServedPicture>;

const route = routesUnder('assets');
const age_default_s = 10;
const age_max_s = 3_600;

const pictureQuery = z.strictObject({
  max_age_s: z.coerce
    .number()
    .int()
    .min(0)
    .max(age_max_s)
    .default(age_default_s)
    .openapi({
      param: {
        name: 'max_age_s',
        in: 'query',
        description: 'a newer picture is taken when the last one is older than so many seconds',
        example: age_default_s,
      },
    }),
});

const pictureResponses = {
  200: {
    description: 'the picture',
    headers: z.object({ 'Last-Modified': z.string().describe('when the picture was taken') }),
    content: { 'image/jpeg': { schema: z.string().openapi({ format: 'binary' }), example: 'JPEG' } },
  },
  ...readProblem,
};

const getSnapshot = route('get', '/api/kits/{kit_id}/assets/{asset_id}/snapshot.jpg', {
  operationId: 'getSnapshot',
  summary: 'Get a picture of a camera',
  description:
    'Returns the last picture of the camera, or a new one when it is older than `max_age_s`. A camera is asked once in 2 s at most. `Last-Modified` is the time of the picture. Pictures stay at the kit: only its own service serves them, any other answers 404.',
  request: { params: assetParams, query: pictureQuery },
  responses: pictureResponses,
});

const getAlarmPicture = route('get', '/api/kits/{kit_id}/assets/{asset_id}/alarm-picture.jpg', {
  operationId: 'getAlarmPicture',
  summary: 'Get the picture of the last alarm of a camera',
  description:
    'Returns the newest small picture that the kit sent with an alarm; the feed `alarm_picture` names the alarms that it belongs to. `Last-Modified` is the time of the picture. 404 with the reason where the newest alarm has none, as where the configuration of the kit (`alarm_picture`) asks for none.',
  request: { params: assetParams },
  responses: pictureResponses,
});

/** As kits publish it; what another says is no picture. */
const alarmPicture = z.looseObject({
  jpeg: z.base64().nullable(),
  taken_at: z.iso.datetime().nullable(),
  reason: z.string().nullish(),
});

/** `pictures`: undefined at a service that is not the kit's own. */
export function pictureRoutes(service: Service, pictures: PictureSource | undefined): OpenAPIHono<Env> {
  const routes = newRoutes();
  routes.openapi(getSnapshot, async (c) => {
    const { kit_id, asset_id } = c.req.valid('param');
    const { name } = await service.asset(c.var.principal, kit_id, asset_id);
    if (!pictures) {
      const sentence = `pictures of ${name} stay at its kit; ask the service of the kit itself`;
      throw new RequestProblem('not-found', sentence);
    }
    const { jpeg, taken_ms } = await pictures(asset_id, c.req.valid('query').max_age_s * 1_000);
    return c.body(new Uint8Array(jpeg), 200, {
      'content-type': 'image/jpeg',
      'cache-control': 'private, no-cache',
      'last-modified': new Date(taken_ms).toUTCString(),
    });
  });
  routes.openapi(getAlarmPicture, async (c) => {
    const { kit_id, asset_id } = c.req.valid('param');
    const { alarm_picture } = await service.feeds(c.var.principal, kit_id, asset_id);
    const { jpeg = null, taken_at = null, reason } = alarmPicture.safeParse(alarm_picture).data ?? {};
    if (jpeg === null || taken_at === null)
      throw new RequestProblem('not-found', reason ?? 'no alarm of this asset has a picture');
    return c.body(new Uint8Array(Buffer.from(jpeg, 'base64')), 200, {
      'content-type': 'image/jpeg',
      'cache-control': 'private, no-cache',
      'last-modified': new Date(taken_at).toUTCString(),
    });
  });
  return routes;
}
