/** The export of a history: streamed page by page, so that its size is no matter of memory. */
import { createRoute, type OpenAPIHono } from '@hono/zod-openapi';
import { messageOf } from '../../../errors.ts';
import { turn } from '../../../platform/time.ts';
import { RequestProblem } from '../../api/problem.ts';
import { messageResource, type HistoryOperations } from '../../history/reading/operations.ts';
import { day_ms, type HistoryMessage } from '../../history/message.ts';
import { newBudget } from '../../history/reading/reader.ts';
import type { Service } from '../../service.ts';
import type { Gate } from '../../access/gate.ts';
import { askerOf } from '../guards.ts';
import { anyProblem, asProblem, type Env, kitParams, withForms } from '../context.ts';
import { csvLine } from './csv.ts';
import type { HistoryGate } from './gate.ts';
import { patiently, streamOf } from './portions.ts';
import { exportQuery, history_limit_max, spanOf } from './query.ts';
import { newRoutes } from '../new-routes.ts';
import { texts } from '../../texts.ts';

/** The longest time of one export. */
export const export_days_max = 31;
/** Characters of data of one page: an export holds a page until its client has taken it, however long that takes. */
const page_chars = 1024 * 1024;
/** Characters of a portion: what is made in one turn, and what the connection holds for a slow client. */
export const portion_chars = 64 * 1024;
/** White space before a JSON value is part of its line, which stays valid JSON; in CSV it would be part of a field. */
const ndjson_filler = ' ';
const csv_head = ['time', 'time_quality', 'channel', 'asset_id', 'feed', 'epoch', 'seq', 'data'];

const exportHistory = createRoute({
  method: 'get',
  path: '/api/kits/{kit_id}/export',
  operationId: 'exportHistory',
  summary: 'Export messages of a kit',
  description: `Streams messages, oldest first, one in each line, of at most ${export_days_max} days: a longer span is 422. The last line of NDJSON is \`{"next": null}\`; a stream without it broke off: ask again \`from\` the time of the last whole line, whose messages come again with the same \`epoch\` and \`seq\`. Lines of NDJSON may begin with spaces, which are sent while nothing is found; CSV has nothing of the kind.`,
  tags: ['history'],
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
    const days = (span.to_ms - span.from_ms) / day_ms;
    // A stream that was cut to the limit would look complete: only NDJSON has a line for its end.
    if (days > export_days_max)
      throw new RequestProblem('out-of-range', texts.export_too_long(Math.ceil(days), export_days_max));
    // Nothing reads the stream of such a response, so it would keep its place.
    if (c.req.method === 'HEAD') return c.body(null, 200, headersOf(format, kit_id));
    const place = await gate.enterExport(c.var.principal);
    const filter = { ...query, ...span, order: 'asc', limit: history_limit_max } as const;
    async function* lines(): AsyncGenerator<string, void, undefined> {
      try {
        if (format === 'csv') yield `${csvLine(csv_head)}\r\n`;
        let cursor = first;
        do {
          const query = { ...filter, cursor };
          const { messages, next } = await patiently(c.env.outgoing, async () =>
            place.read(async () => history.page(kit_id, query, newBudget(page_chars))),
          );
          yield* portionsOf(messages, format, async (some) => history.kept(kit_id, some));
          cursor = next ?? undefined;
        } while (cursor !== undefined);
        if (format === 'ndjson') yield '{"next":null}\n';
      } finally {
        place.leave();
      }
    }
    const { principal } = c.var;
    const asker = askerOf(c);
    const mayRead = async (): Promise<boolean> => access.isStillKnown(principal, asker);
    const filler = format === 'ndjson' ? ndjson_filler : undefined;
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
  format: 'ndjson' | 'csv',
  keptOf: (messages: readonly HistoryMessage[]) => Promise<readonly HistoryMessage[]>,
): AsyncGenerator<string, void, undefined> {
  for (let left = await keptOf(messages); left.length > 0; left = await keptOf(left)) {
    let [portion, taken] = ['', 0];
    for (const message of left) {
      portion += lineOf(message, format);
      taken += 1;
      if (portion.length >= portion_chars) break;
    }
    yield portion;
    left = left.slice(taken);
    await turn();
  }
}

const brokenOff = (error: unknown): Error => new Error(texts.export_broken(messageOf(error)));

function headersOf(format: 'ndjson' | 'csv', kit_id: string): Record<string, string> {
  return {
    'content-type': format === 'csv' ? 'text/csv; charset=utf-8' : 'application/x-ndjson',
    'content-disposition': `attachment; filename="${kit_id}.${format}"`,
    // nginx would keep up to a gigabyte of it on its disk, for a client whose key may be revoked meanwhile.
    'x-accel-buffering': 'no',
  };
}

function lineOf(message: HistoryMessage, format: 'ndjson' | 'csv'): string {
  const resource = messageResource(message);
  if (format === 'ndjson') return `${JSON.stringify(resource)}\n`;
  const { time, time_quality, channel, asset_id, feed, epoch, seq } = resource;
  // JSON has semicolons in texts alone, so that it stays the same JSON.
  const data = message.data.replaceAll(';', '\\u003b');
  return `${csvLine([time, time_quality, channel, asset_id, feed, epoch, seq, data])}\r\n`;
}
