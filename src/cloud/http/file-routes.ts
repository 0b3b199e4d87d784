/** Files of kits: lists, contents by ranges, orders; and where the kits send them (tus 1.0, core protocol). */
import { type OpenAPIHono, z } from '@hono/zod-openapi';
import { createReadStream } from 'node:fs';
import type { Context } from 'hono';
import { fileKind } from '../../contract/files.ts';
import { fileList, fileResource, fileState } from '../api/file-resources.ts';
import { RequestProblem } from '../api/problem.ts';
import { type CloudFiles, HashMismatch } from '../files/cloud-files.ts';
import { fileResourceOf } from '../files/file-resource.ts';
import type { FilesStore, StoredFile } from '../files/file-store.ts';
import { demandScope } from '../principal.ts';
import type { Service } from '../service.ts';
import { messageOf } from '../../platform/errors.ts';
import { texts } from '../texts.ts';
import {
  asProblem,
  changeProblem,
  type Env,
  fileParams,
  kitParams,
  okJson,
  readProblem,
  routesUnder,
} from './context.ts';
import { eventQuery, ids, limitOf, listOf, query } from './history/query.ts';
import { newRoutes } from './problems.ts';
import { rangeHeaders, sendBytes } from './ranges.ts';

const route = routesUnder('files');
const upload_path = '/uploads/:kit_id/:file_id';
const hash_mismatch = 460;

const listQuery = z.object({
  kinds: query('kinds', listOf(fileKind).optional(), 'only these kinds, separated by commas', 'flight_log'),
  assets: query('assets', ids.optional(), 'only files of these assets, separated by commas'),
  states: query(
    'states',
    listOf(fileState).optional(),
    'only files in these states, separated by commas',
    'stored',
  ),
  from: eventQuery.shape.from,
  to: eventQuery.shape.to,
  limit: limitOf(1_000, 100),
  cursor: query('cursor', z.string().max(128).optional(), '`next` of the page before, with the same query'),
});

const list = route('get', '/api/kits/{kit_id}/files', {
  operationId: 'listFiles',
  summary: 'List files of a kit',
  description: 'Returns the files that the kit has announced, the newest first, with their state.',
  request: { params: kitParams, query: listQuery },
  responses: { 200: okJson(fileList, 'the newest first'), ...readProblem },
});
const get = route('get', '/api/kits/{kit_id}/files/{file_id}', {
  operationId: 'getFile',
  summary: 'Get a file without its content',
  description: 'Returns one entry of List files.',
  request: { params: fileParams },
  responses: { 200: okJson(fileResource, 'the file'), ...readProblem },
});
const binary = {
  '*/*': { schema: z.string().openapi({ format: 'binary' }), example: 'bytes' },
};
const contentHeaders = z.object({
  'Accept-Ranges': z.string().describe('always `bytes`'),
  ETag: z.string().describe('strong: the SHA-256; for `If-Range` and `If-None-Match`'),
  'Content-Disposition': z.string().describe('always `attachment`, with the name'),
});
const content = route('get', '/api/kits/{kit_id}/files/{file_id}/content', {
  operationId: 'getFileContent',
  summary: 'Get the content of a file',
  description:
    'Returns the content with its own type, or the part that the header `Range` names. 409 while it is not here: order it with Request file.',
  request: {
    params: fileParams,
    headers: rangeHeaders,
  },
  responses: {
    200: { description: 'the whole content', headers: contentHeaders, content: binary },
    206: {
      description: 'the part',
      headers: contentHeaders.extend({ 'Content-Range': z.string().describe('`bytes FIRST-LAST/SIZE`') }),
      content: binary,
    },
    ...readProblem,
    409: asProblem(409, 'the content is not here'),
    416: asProblem(
      416,
      'the range begins behind the end of the content',
      z.object({ 'Content-Range': z.string().describe('`bytes */SIZE`') }),
    ),
  },
});
const request = route('post', '/api/kits/{kit_id}/files/{file_id}/request', {
  operationId: 'requestFile',
  summary: 'Request a file',
  description:
    'Orders the content: the kit sends it before others, and also over a link on which it sends files on order only. An offline kit is asked when it connects. 409 when it is here already, or the kit has given it up. Scope `commands`.',
  request: { params: fileParams },
  responses: { 202: okJson(fileResource, 'the file, ordered'), ...changeProblem },
});
const remove = route('delete', '/api/kits/{kit_id}/files/{file_id}', {
  operationId: 'deleteFile',
  summary: 'Delete a file',
  description: 'Deletes the file here and at the kit. Scope `history:erase`.',
  request: { params: fileParams },
  responses: { 204: { description: 'deleted' }, ...changeProblem },
});

export interface FileRouteParts {
  readonly service: Service;
  readonly store: FilesStore;
  /** Undefined: a service that keeps no contents. */
  readonly files?: CloudFiles | undefined;
}

export function fileRoutes({ service, store, files }: FileRouteParts): OpenAPIHono<Env> {
  const routes = newRoutes();
  const find = async (c: Context<Env>, place: { kit_id: string; file_id: string }): Promise<StoredFile> => {
    await service.requireKit(c.var.principal, place.kit_id);
    const file = await store.file(place);
    if (!file || file.state === 'deleted')
      throw new RequestProblem('not-found', texts.no_file(place.file_id));
    return file;
  };
  const contents = (): CloudFiles => {
    if (!files) throw new RequestProblem('conflict', texts.no_files_here);
    return files;
  };
  routes.openapi(list, async (c) => {
    const { kit_id } = c.req.valid('param');
    await service.requireKit(c.var.principal, kit_id);
    const { from, to, cursor, limit, ...filter } = c.req.valid('query');
    const after = cursor === undefined ? undefined : readCursor(cursor);
    const found = await store.files(kit_id, { ...filter, from_ms: from, to_ms: to, after, limit: limit + 1 });
    const listed = found.slice(0, limit);
    const last = found.length > limit ? listed.at(-1) : undefined;
    return c.json(
      { files: listed.map(fileResourceOf), next: last ? `${last.at_ms}_${last.file_id}` : null },
      200,
    );
  });
  routes.openapi(get, async (c) => c.json(fileResourceOf(await find(c, c.req.valid('param'))), 200));
  routes.openapi(content, async (c) => {
    const file = await find(c, c.req.valid('param'));
    if (file.state !== 'stored') throw new RequestProblem('conflict', texts.file_not_here);
    return sendContent(c, file, await contents().wholePathOf(file));
  });
  routes.openapi(request, async (c) => {
    demandScope(c.var.principal, 'commands');
    const place = c.req.valid('param');
    const file = await find(c, place);
    if (file.state !== 'at_kit') throw new RequestProblem('conflict', texts.file_not_at_kit);
    await contents().order(place);
    return c.json(fileResourceOf(await find(c, place)), 202);
  });
  routes.openapi(remove, async (c) => {
    demandScope(c.var.principal, 'history:erase');
    const place = c.req.valid('param');
    await find(c, place);
    await contents().remove(place);
    return c.body(null, 204);
  });
  return routes;
}

function readCursor(text: string): { readonly at_ms: number; readonly file_id: string } {
  const [, at_ms, file_id] = /^(\d{1,15})_([0-9a-f-]{36})$/u.exec(text) ?? [];
  if (file_id === undefined) throw new RequestProblem('bad-request', texts.cursor_of_list);
  return { at_ms: Number(at_ms), file_id };
}

/** As an attachment: a page that a device has made must not run here. */
function sendContent(c: Context<Env>, { data }: StoredFile, path: string): Response {
  const { bytes, content_type, name, sha256 } = data;
  c.header('Content-Disposition', `attachment; filename*=UTF-8''${encodeURIComponent(name)}`);
  return sendBytes(c, {
    tag: `"${sha256}"`,
    bytes,
    content_type,
    stream(first, length) {
      const read: AsyncIterable<Uint8Array<ArrayBuffer>> = createReadStream(path, {
        start: first,
        end: first + length - 1,
      });
      return streamOf(read[Symbol.asyncIterator](), length, (reason) => {
        c.set('cut_by', reason);
        // Compressed it has no length: the server of node would write the error and the end of the answer after what came.
        c.env.outgoing?.destroy();
      });
    },
  });
}

function streamOf(
  chunks: AsyncIterator<Uint8Array<ArrayBuffer>>,
  length: number,
  cut: (reason: string) => void,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  let left = length;
  return new ReadableStream(
    {
      async pull(controller) {
        const next = await chunks.next().catch((error: unknown) => messageOf(error));
        if (typeof next !== 'string' && !next.done) {
          left -= next.value.length;
          controller.enqueue(next.value);
          return;
        }
        if (left > 0) cut(typeof next === 'string' ? next : texts.file_lost);
        controller.close();
      },
      async cancel() {
        await chunks.return?.();
      },
    },
    { highWaterMark: 1 },
  );
}

/** Outside of `/api`: kits have permits, and no keys. Not in the document of the API, but in that of the contract. */
export function uploadRoutes(files: CloudFiles | undefined): OpenAPIHono<Env> {
  const routes = newRoutes();
  if (!files) return routes;
  routes.use(upload_path, async (c, next) => {
    await next();
    c.header('Tus-Resumable', '1.0.0');
    c.header('Cache-Control', 'no-store');
  });
  routes.options(upload_path, (c) => c.body(null, 204, { 'Tus-Version': '1.0.0' }));
  routes.get(upload_path, async (c) => {
    const file = await permitted(c, files);
    c.header('Upload-Length', String(file.data.bytes));
    return checked(async () => c.body(null, 200, { 'Upload-Offset': String(await files.offset(file)) }));
  });
  routes.patch(upload_path, async (c) => {
    const file = await permitted(c, files);
    if (c.req.header('content-type') !== 'application/offset+octet-stream')
      throw new RequestProblem('unsupported-type', texts.upload_type);
    const at = Number(c.req.header('upload-offset') ?? Number.NaN);
    const length = Number(c.req.header('content-length') ?? 0);
    if (at + length > file.data.bytes) throw new RequestProblem('too-large', texts.upload_too_long);
    return checked(async () => {
      const offset = await files.append(file, at, c.req.raw.body ?? emptyBody());
      if (offset !== undefined) return c.body(null, 204, { 'Upload-Offset': String(offset) });
      c.header('Upload-Offset', String(await files.offset(file)));
      return c.body(null, 409);
    });
  });
  return routes;
}

async function checked(answer: () => Promise<Response>): Promise<Response> {
  try {
    return await answer();
  } catch (error) {
    if (!(error instanceof HashMismatch)) throw error;
    return new Response(error.message, { status: hash_mismatch });
  }
}

async function permitted(c: Context<Env>, files: CloudFiles): Promise<StoredFile> {
  const [, token = ''] = /^Bearer ([\w-]+)$/iu.exec(c.req.header('authorization') ?? '') ?? [];
  return files.permitted(
    { kit_id: c.req.param('kit_id') ?? '', file_id: c.req.param('file_id') ?? '' },
    token,
  );
}

async function* emptyBody(): AsyncGenerator<Uint8Array> {}
