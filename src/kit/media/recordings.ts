/**
 * Pieces of MediaMTX's recordings by its playback API (api/playback.openapi.yaml of bluenviron/mediamtx). go2rtc records nothing. Real servers
 * list durations of days for minutes (bluenviron/mediamtx 4711), stop at the first gap of a broken stream (3510), and find nothing some
 * milliseconds before a new segment (4276): so a span is looked for first, and what comes is limited in bytes and time.
 */
import type { IncomingMessage } from 'node:http';
import { z } from 'zod';
import { CommandRefused, DeviceUnreachable } from '../../platform/errors.ts';
import { type ApiAccess, askApi, openApi } from './api-request.ts';
import { texts } from './texts.ts';

interface ClipOrder {
  /** Of the stream. */
  readonly name: string;
  /** UTC, milliseconds since 1970. */
  readonly from_ms: number;
  readonly event_ms: number;
  readonly to_ms: number;
}

interface Clip {
  /** MP4. Throws when it becomes too large, or does not end. */
  readonly content: AsyncIterable<Uint8Array>;
  readonly from_ms: number;
}

const spans = z.array(z.looseObject({ start: z.iso.datetime({ offset: true }), duration: z.number() }));
/** Days of segments are read by the server before it answers (bluenviron/mediamtx 5094). */
const answer_max_ms = 60_000;
const clip_max_ms = 300_000;
/** Two minutes of a camera at 16 Mbit/s. */
const clip_bytes_max = 256 * 1024 * 1024;
/** Beyond the place where the server finds nothing. */
const later_ms = 250;

/** Rejects with `CommandRefused` where there is no recording, with `DeviceUnreachable` where the server gives none now. */
export async function recordedClip(access: ApiAccess, order: ClipOrder, signal: AbortSignal): Promise<Clip> {
  const span = await spanOf(access, order, signal);
  const first = await openClip(access, order, span.from_ms, signal);
  const answer = first.statusCode === 404 ? await again() : first;
  async function again(): Promise<IncomingMessage> {
    first.destroy();
    return openClip(access, order, span.from_ms + later_ms, signal);
  }
  if (answer.statusCode !== 200) {
    answer.destroy();
    throw refusalOf(answer.statusCode ?? 0);
  }
  return { content: limited(answer), from_ms: span.from_ms };
}

/** The recorded span around the event, else the one before it, else the first. */
async function spanOf(
  access: ApiAccess,
  { name, from_ms, event_ms, to_ms }: ClipOrder,
  signal: AbortSignal,
): Promise<{ readonly from_ms: number }> {
  const query = new URLSearchParams({ path: name, start: isoOf(from_ms), end: isoOf(to_ms) });
  const path = `/list?${query.toString()}`;
  const { status, body } = await askApi(access, { method: 'GET', path, signal, deadline_ms: answer_max_ms });
  if (status !== 200) throw refusalOf(status);
  const starts = spans
    .parse(body)
    .filter(({ duration }) => duration > 0)
    .map(({ start }) => Math.max(from_ms, Date.parse(start)))
    .filter((start_ms) => start_ms < to_ms)
    .toSorted((a, b) => a - b);
  const start_ms = starts.findLast((each) => each <= event_ms) ?? starts[0];
  if (start_ms === undefined) throw new CommandRefused(texts.no_recording);
  return { from_ms: start_ms };
}

async function openClip(
  access: ApiAccess,
  { name, to_ms }: ClipOrder,
  from_ms: number,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  // Plays everywhere, and comes whole or not at all: the server sends it once all of it is read.
  const format = 'mp4';
  const duration = String((to_ms - from_ms) / 1_000);
  const query = new URLSearchParams({ path: name, start: isoOf(from_ms), duration, format });
  const path = `/get?${query.toString()}`;
  return openApi(access, { method: 'GET', path, signal, deadline_ms: clip_max_ms });
}

async function* limited(answer: IncomingMessage): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > clip_bytes_max) throw new CommandRefused(texts.clip_too_large(clip_bytes_max));
    yield chunk;
  }
}

function refusalOf(status: number): Error {
  if (status === 404) return new CommandRefused(texts.no_recording);
  if (status === 401) return new CommandRefused(texts.playback_refused_login);
  return new DeviceUnreachable(texts.playback_failed(status));
}

function isoOf(time_ms: number): string {
  return new Date(time_ms).toISOString();
}
