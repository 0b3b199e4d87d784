/** Answers of the history that end before their end: chunked or with a length, their clients see it, and the log says why. */
import type { MiddlewareHandler } from 'hono';
import type { ServiceLog } from '../../service-log.ts';
import { texts } from '../../texts.ts';
import type { Env } from '../context.ts';

/** Paths of answers that take their clients longer than a moment. */
export const cuttable_paths = [
  '/api/kits/:kit_id/:answer{export|history|series}',
  '/api/kits/:kit_id/assets/:asset_id/:answer{history|track}',
];

/** Logs one line for an answer that had begun and whose end did not leave. */
export function noteCuts(log: ServiceLog): MiddlewareHandler<Env> {
  return async (c, next) => {
    const { outgoing: response } = c.env;
    const socket = response?.socket;
    if (response && socket) {
      const params: Readonly<Record<string, string>> = c.req.param();
      let stalled: string | undefined;
      const onStall = (): void => void (stalled = texts.client_stalled((socket.timeout ?? 0) / 1_000));
      socket.once('timeout', onStall);
      response.once('close', () => {
        socket.off('timeout', onStall);
        // Of one that had not begun its client has nothing.
        if (response.writableFinished || !response.headersSent) return;
        const cut_by = c.get('cut_by') ?? stalled;
        const { kit_id, asset_id } = params;
        const about = { kit_id, asset_id, answer: params['answer'], format: c.req.query('format') };
        const facts = { ...about, reason: cut_by ?? texts.client_left };
        // Clients may leave as they please.
        if (cut_by === undefined) log.info(facts, texts.log_answer_cut);
        else log.warn(facts, texts.log_answer_cut);
      });
    }
    await next();
  };
}
