/** The export of a history: streamed page by page, so that its size is no matter of memory. */
import { type OpenAPIHono } from '@hono/zod-openapi';
import { messageOf } from '../../../platform/errors.ts';
import { day_ms, every, turn } from '../../../platform/time.ts';
import { RequestProblem } from '../../api/problem.ts';
import { type HistoryOperations, messageResource } from '../../history/reading/operations.ts';
import type { HistoryMessage } from '../../history/message.ts';
import { newBudget } from '../../history/reading/reader.ts';
import type { Service } from '../../service.ts';
import type { Gate } from '../../access/gate.ts';
import { askerOf } from '../guards.ts';
import { anyProblem, asProblem, type Env, kitParams, withForms, routesUnder } from '../context.ts';
import { type CsvForm, csvHead, csvRow } from './csv.ts';
import type { HistoryGate } from './gate.ts';
import { exportQuery, history_limit_max, hour_ms, spanOf } from './query.ts';
import { newRoutes } from '../problems.ts';
import { texts } from '../../texts.ts';
import type { ServerResponse } from 'node:http';

/** The longest time of one export. */
export const export_days_max = 31;
/** Characters of data of one page: an export holds a page until its client has taken it, however long that takes. */
const route = routesUnder('history');
const page_chars = 1024 * 1024;
/** Characters of a portion: what is made in one turn, and what the connection holds for a slow client. */
export const portion_chars = 64 * 1024;
/** White space before a JSON value is part of its line, which stays valid JSON; in CSV it would be part of a field. */
const ndjson_filler = ' ';
const csv_head = ['time_quality', 'channel', 'asset_id', 'feed', 'epoch', 'seq', 'data'];

const exportHistory = route('get', '/api/kits/{kit_id}/export', {
  operationId: 'exportHistory',
  summary: 'Export messages of a kit',
  description: `Streams messages, oldest first, one in each line, of at most ${export_days_max} days: a longer span is 422. The last line of NDJSON is \`{"next": null}\`; a stream without it broke off: ask again \`from\` the time of the last whole line, whose messages come again with the same \`epoch\` and \`seq\`. Lines of NDJSON may begin with spaces, which are sent while nothing is found; CSV has nothing of the kind.`,
  request: { params: kitParams, query: exportQuery },
  responses: {
    200: withForms(
      { description: 'one message in each line', content: {} },
      {
        'application/x-ndjson': '{"time":"2026-11-21T10:00:00.000Z","channel":"telemetry"}',
        'text/csv': 'time,time_quality,channel,asset_id,feed,epoch,seq,data',
      },
    ),
    ...anyProblem,
    422: asProblem(422, 'the span is longer than an export may be'),
  },
});

export function exportRoutes(
  service: Service,
  history: HistoryOperations,
  gate: HistoryGate,
  access: Pick<Gate, 'isStillKnown'>,
): OpenAPIHono<Env> {
  const routes = newRoutes();
  routes.openapi(exportHistory, async (c) => {
    const { kit_id } = c.req.valid('param');
    const { format, cursor: first, ...query } = c.req.valid('query');
    await service.kit(c.var.principal, kit_id);
    const span = spanOf(query, Date.now());
    // What lies ahead of now is of kits whose clock is.
    const days = (Math.min(span.to_ms, Date.now() + hour_ms) - span.from_ms) / day_ms;
    // A stream that was cut to the limit would look complete: only NDJSON has a line for its end.
    if (days > export_days_max)
      throw new RequestProblem('out-of-range', texts.export_too_long(Math.ceil(days), export_days_max));
    // Nothing reads the stream of such a response, so it would keep its place.
    if (c.req.method === 'HEAD') return c.body(null, 200, headersOf(format, kit_id));
    const place = await gate.enterExport(c.var.principal);
    const filter = { ...query, ...span, order: 'asc', limit: history_limit_max } as const;
    async function* lines(): AsyncGenerator<string, void, undefined> {
      try {
        async function* pages() {
          let cursor = first;
          do {
            const query = { ...filter, cursor };
            const { messages, next } = await patiently(c.env.outgoing, async () =>
              place.read(async () => history.page(kit_id, query, newBudget(page_chars))),
            );
            yield messages;
            cursor = next ?? undefined;
          } while (cursor !== undefined);
        }
        const fields = new Set<string>();
        // Which columns there are shows only when all has been read.
        if (isFlat(format))
          for await (const messages of pages())
            for (const { data } of messages) for (const field of flat(data).keys()) fields.add(field);
        const columns = [...fields].sort();
        const head = isFlat(format) ? [...csv_head.slice(0, -1), ...columns] : csv_head;
        if (format !== 'ndjson') yield `${csvHead(head, format)}\r\n`;
        for await (const messages of pages())
          yield* portionsOf(
            messages,
            (message) => lineOf(message, format, columns),
            async (some) => history.kept(kit_id, some),
          );
        if (format === 'ndjson') yield '{"next":null}\n';
      } finally {
        place.leave();
      }
    }
    const { principal } = c.var;
    const asker = askerOf(c);
    const mayRead = async (): Promise<boolean> => access.isStillKnown(principal, asker);
    const filler = format === 'ndjson' ? ndjson_filler : undefined;
    const brokenOff = (error: unknown): Error | undefined => {
      c.set('cut_by', messageOf(error));
      // The server of node would print what its stream ends with.
      return c.env.outgoing?.destroy() ? undefined : new Error(messageOf(error), { cause: error });
    };
    return c.body(streamOf(lines(), { brokenOff, mayRead, filler }), 200, headersOf(format, kit_id));
  });
  return routes;
}

/**
 * The lines of messages in small portions, with a turn for others after each. A client may take minutes over each: what was erased
 * meanwhile is left out.
 */
async function* portionsOf(
  messages: readonly HistoryMessage[],
  write: (message: HistoryMessage) => string,
  keptOf: (messages: readonly HistoryMessage[]) => Promise<readonly HistoryMessage[]>,
): AsyncGenerator<string, void, undefined> {
  for (let left = await keptOf(messages); left.length > 0; left = await keptOf(left)) {
    let [portion, taken] = ['', 0];
    for (const message of left) {
      portion += write(message);
      taken += 1;
      if (portion.length >= portion_chars) break;
    }
    yield portion;
    left = left.slice(taken);
    await turn();
  }
}

type Format = 'ndjson' | CsvForm;

/** With a column for each field of the data. */
function isFlat(format: Format): boolean {
  return format !== 'ndjson' && format !== 'csv';
}

function headersOf(format: Format, kit_id: string): Record<string, string> {
  return {
    'content-type': format === 'ndjson' ? 'application/x-ndjson' : 'text/csv; charset=utf-8',
    'content-disposition': `attachment; filename="${kit_id}.${format === 'ndjson' ? format : 'csv'}"`,
    // nginx would keep up to a gigabyte of it on its disk, for a client whose key may be revoked meanwhile.
    'x-accel-buffering': 'no',
  };
}

function lineOf(message: HistoryMessage, format: Format, columns: readonly string[]): string {
  const resource = messageResource(message);
  if (format === 'ndjson') return `${JSON.stringify(resource)}\n`;
  const { time, time_quality, channel, asset_id, feed, epoch, seq } = resource;
  const head = [time_quality, channel, asset_id, feed, epoch, seq];
  const values = isFlat(format) ? flat(message.data) : undefined;
  const cells = values
    ? columns.map((column) => values.get(column))
    : // JSON has semicolons in texts alone, so that it stays the same JSON.
      [message.data.replaceAll(';', '\\u003b')];
  return `${csvRow(time, [...head, ...cells], format)}\r\n`;
}

/** The fields of the data by their paths; lists stay JSON. */
function flat(data: string): ReadonlyMap<string, string | number | null> {
  const fields = new Map<string, string | number | null>();
  const add = (value: unknown, path: string): void => {
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      for (const [key, each] of Object.entries(value)) add(each, path === '' ? key : `${path}.${key}`);
    else if (typeof value === 'string' || typeof value === 'number' || value === null)
      fields.set(path, value);
    else fields.set(path, JSON.stringify(value));
  };
  add(JSON.parse(data), '');
  return fields;
}

/** A client that takes no portion for so long gives up its place: it would keep it for good by reading now and then. */
export const portion_wait_max_ms = 300_000;

/** Proxies in front cut a response off in which nothing comes for a minute, and a page can take longer: its place has to be free. */
export const quiet_max_ms = 15_000;

/** How often it is asked whether a client may still read, as with WebSockets. */
export const look_every_ms = 5_000;

export interface StreamParts {
  /** Ends the response, or returns with what its stream is to end. */
  readonly brokenOff: (error: unknown) => Error | undefined;
  /** Whether the client may still read: it can take hours over what it asked for. Rejects when that is not known. */
  readonly mayRead: () => Promise<boolean>;
  /** Sent while a portion is long in coming; means nothing between two portions. Left out: the format has no such text. */
  readonly filler?: string | undefined;
}

type Controller = ReadableStreamDefaultController<Uint8Array>;

/** The response that these portions make, one after the other; breaks off when its client may no longer read. */
export function streamOf(
  portions: AsyncGenerator<string, void, undefined>,
  { brokenOff, mayRead, filler }: StreamParts,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const over = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let isReading = false;
  const end = (): void => {
    clearTimeout(timer);
    over.abort();
  };
  const fail = (controller: Controller, error: unknown): void => {
    end();
    const failed = brokenOff(error);
    if (failed) controller.error(failed);
  };
  const breakOff = (controller: Controller, reason: string): void => {
    void portions.return();
    fail(controller, new Error(reason));
  };
  const look = async (controller: Controller): Promise<void> => {
    const isAllowed = await mayRead().catch(() => true);
    if (!isAllowed && !over.signal.aborted) breakOff(controller, texts.key_ended);
  };
  return new ReadableStream(
    {
      start(controller) {
        every(look_every_ms, over.signal, () => void look(controller));
        if (filler === undefined) return;
        every(quiet_max_ms, over.signal, () => {
          // A client that takes nothing has enough to read.
          if (isReading && (controller.desiredSize ?? 0) > 0) controller.enqueue(encoder.encode(filler));
        });
      },
      async pull(controller) {
        clearTimeout(timer);
        try {
          isReading = true;
          const next = await portions.next();
          isReading = false;
          if (over.signal.aborted) return;
          if (next.done === true) {
            end();
            controller.close();
            return;
          }
          controller.enqueue(encoder.encode(next.value));
          timer = setTimeout(() => {
            breakOff(controller, texts.client_stalled(portion_wait_max_ms / 1_000));
          }, portion_wait_max_ms).unref();
        } catch (error) {
          fail(controller, error);
        }
      },
      async cancel() {
        end();
        await portions.return();
      },
    },
    { highWaterMark: 1 },
  );
}

/**
 * Does the work without the limit for connections on which nothing happens: CSV has nothing that could be sent until a message is found.
 * Who reads nothing of what was found has that limit.
 */
export async function patiently<T>(response: ServerResponse | undefined, work: () => Promise<T>): Promise<T> {
  const socket = response?.socket;
  const idle_ms = socket?.timeout ?? 0;
  socket?.setTimeout(0);
  try {
    return await work();
  } finally {
    socket?.setTimeout(idle_ms);
  }
}
