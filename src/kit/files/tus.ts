/**
 * Sends a file by the core protocol of tus 1.0 (https://tus.io/protocols/resumable-upload): the offset is asked for before each part,
 * so that nothing has to be remembered here. Each part has its own connection, and is as long as the way takes in a few seconds:
 * proxies that pass a body on as a whole lose it with the connection (mieweb/opensource-server 395), and some take 1 MiB at
 * most (tus-node-server 33).
 */
import { once } from 'node:events';
import { type FileHandle, open } from 'node:fs/promises';
import { type IncomingHttpHeaders, request as httpRequest } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { DeviceUnreachable, RetryLater } from '../../platform/errors.ts';
import { within } from '../../platform/time.ts';
import { type Room, ShortQueue } from './short-queue.ts';
import { texts } from './texts.ts';

const [part_bytes_min, part_bytes_first, part_bytes_max] = [64 * 1024, 256 * 1024, 8 * 1024 * 1024];
/** What a part should take; a server ends requests after 15 s or more. */
const part_ms = 5_000;
const answer_ms = 30_000;
/** Of the file, at once. */
const read_bytes = 64 * 1024;
/** Of an error, for people. */
const words_bytes_max = 500;
/** Where another request holds the upload, as a broken one whose end the server has not noticed (tus-js-client 79). */
const locked_retry_ms = 2_000;

export interface TusTarget {
  readonly url: string;
  readonly token: string;
}

export interface TusFile {
  readonly path: string;
  readonly bytes: number;
}

export interface TusWay {
  /** Connects to the host of the address: TCP, proxy and TLS. `tcp`: what the bytes leave by. */
  readonly connect: (url: URL, signal: AbortSignal) => Promise<{ stream: Duplex; tcp?: Socket }>;
  /** Resolves when so many bytes may be written. Rejects when nothing may be sent any more. */
  readonly pace: (bytes: number, signal: AbortSignal) => Promise<void>;
  readonly onSent: (bytes: number) => void;
}

/** The server does not know the upload, or the permit has expired: another permit is needed. */
export class PermitRefused extends DeviceUnreachable {}
/** All bytes are there, and have another hash than was announced. */
export class HashRefused extends DeviceUnreachable {}

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly words: string;
}

export class TusUpload {
  readonly #way: TusWay;
  readonly #queue = new ShortQueue();
  #part_bytes = part_bytes_first;
  /** Less, once a proxy on the way has refused as much. */
  #part_bytes_most = part_bytes_max;

  constructor(way: TusWay) {
    this.#way = way;
  }

  /** Resolves once the server has all bytes. Rejects with what stopped it: it goes on from there the next time. */
  async send(file: TusFile, target: TusTarget, signal: AbortSignal): Promise<void> {
    await using handle = await open(file.path, 'r');
    let offset = await this.#offset(target, signal);
    while (offset < file.bytes) {
      const length = Math.min(this.#part_bytes, file.bytes - offset);
      const begin_ms = performance.now();
      let answer: Answer;
      try {
        const part = { offset, length, read: piecesOf(handle, offset, length) };
        answer = await this.#request(target, 'PATCH', part, signal);
      } catch (error) {
        this.#shorten();
        throw error;
      }
      // Another request of ours had come further than its answer (opencloud-eu/desktop 971).
      if (answer.status === 409) offset = await this.#offset(target, signal);
      else if (answer.status === 413 && length > part_bytes_min) {
        this.#part_bytes = length;
        this.#shorten();
        this.#part_bytes_most = this.#part_bytes;
      } else {
        const next = offsetOf(answer);
        if (next <= offset) throw new DeviceUnreachable(texts.no_progress);
        offset = next;
        const rate = part_ms / Math.max(1, performance.now() - begin_ms);
        const longest = Math.min(this.#part_bytes_most, Math.round(length * rate));
        this.#part_bytes = Math.max(part_bytes_min, longest);
      }
    }
  }

  #shorten(): void {
    this.#part_bytes = Math.max(part_bytes_min, Math.round(this.#part_bytes / 2));
  }

  async #offset(target: TusTarget, signal: AbortSignal): Promise<number> {
    return offsetOf(await this.#request(target, 'HEAD', undefined, signal));
  }

  async #request(
    { url, token }: TusTarget,
    method: 'HEAD' | 'PATCH',
    part:
      | { readonly offset: number; readonly length: number; readonly read: AsyncIterable<Buffer> }
      | undefined,
    signal: AbortSignal,
  ): Promise<Answer> {
    const to = new URL(url);
    const over = new AbortController();
    const ends = AbortSignal.any([signal, over.signal]);
    const { stream, tcp } = await this.#way.connect(to, ends);
    try {
      await this.#way.pace(0, ends);
      const asking = httpRequest({
        method,
        path: `${to.pathname}${to.search}`,
        createConnection: () => stream,
        signal: ends,
        headers: {
          host: to.host,
          authorization: `Bearer ${token}`,
          'tus-resumable': '1.0.0',
          ...(part && {
            'content-type': 'application/offset+octet-stream',
            'content-length': part.length,
            'upload-offset': part.offset,
          }),
        },
      });
      const answered = answerOf(asking);
      answered.catch(() => undefined);
      // A server may refuse before it has read the body: then its answer counts, not the broken connection.
      const room = await this.#queue.of(tcp);
      const sent = this.#write(asking, part?.read ?? [], room, ends);
      const first = await Promise.race([answered, sent]);
      sent.catch(() => undefined);
      const answer = first ?? (await within(answer_ms, answered, ends));
      if (!answer) throw new DeviceUnreachable(texts.no_http_answer);
      refuse(answer);
      return answer;
    } finally {
      over.abort();
      stream.destroy();
    }
  }

  async #write(
    asking: ReturnType<typeof httpRequest>,
    read: AsyncIterable<Buffer> | Iterable<Buffer>,
    room: Room,
    signal: AbortSignal,
  ): Promise<void> {
    for await (const bytes of read) {
      for (let at = 0; at < bytes.length;) {
        const piece = bytes.subarray(at, at + (await room(signal)));
        await this.#way.pace(piece.length, signal);
        if (!asking.write(piece)) await once(asking, 'drain', { signal });
        this.#way.onSent(piece.length);
        at += piece.length;
      }
    }
    asking.end();
  }
}

async function answerOf(asking: ReturnType<typeof httpRequest>): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  asking.once('error', reject);
  asking.once('response', (response) => {
    let words = '';
    response.on('data', (chunk: Buffer) => {
      if (words.length < words_bytes_max) words += chunk.toString('latin1');
    });
    response.once('error', reject);
    response.once('end', () =>
      resolve({
        status: response.statusCode ?? 0,
        headers: response.headers,
        words: words.slice(0, words_bytes_max),
      }),
    );
  });
  return promise;
}

const permit_refused: ReadonlySet<number> = new Set([401, 403, 404, 410]);

/** Throws for the answers after which the upload does not go on. */
function refuse({ status, words }: Answer): void {
  if (permit_refused.has(status)) throw new PermitRefused(texts.http_status(status, words));
  if (status === 460) throw new HashRefused(texts.http_status(status, words));
  if (status === 423) throw new RetryLater(texts.http_status(status, words), locked_retry_ms);
  const isExpected = (status >= 200 && status < 300) || status === 409 || status === 413;
  if (!isExpected) throw new DeviceUnreachable(texts.http_status(status, words));
}

/** A proxy that answers HEAD from its cache removes the header (tusd 452). */
function offsetOf({ status, headers, words }: Answer): number {
  const text = headers['upload-offset'];
  if (status === 413) throw new DeviceUnreachable(texts.http_status(status, words));
  if (typeof text !== 'string' || !/^\d{1,15}$/u.test(text))
    throw new DeviceUnreachable(texts.no_offset(status));
  return Number(text);
}

async function* piecesOf(handle: FileHandle, from: number, length: number): AsyncGenerator<Buffer> {
  for (let at = from; at < from + length;) {
    const bytes = Math.min(read_bytes, from + length - at);
    const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(bytes), 0, bytes, at);
    if (bytesRead === 0) throw new DeviceUnreachable(texts.file_cut);
    yield buffer.subarray(0, bytesRead);
    at += bytesRead;
  }
}
