import { deflateSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { deflate_options } from '../../../../../src/contract/batch/pack.ts';
import { BatchDeflater } from '../../../../../src/kit/outbox/store/batch-deflater.ts';

const text = (length: number): Uint8Array =>
  Uint8Array.from({ length }, (_, at) => 48 + (((at * 7_919) % 61) % 10));

test('compresses one text after the other, each as if it were the only one', async () => {
  const deflater = new BatchDeflater();
  const texts = [0, 10, 18_000, 300_000, 5].map(text);
  const deflated = await Promise.all(texts.map(async (each) => deflater.deflate(each)));
  expect(deflated.map((each) => Buffer.from(each).toString('hex'))).toEqual(
    texts.map((each) => deflateSync(each, deflate_options).toString('hex')),
  );
});

test('gives each batch separate memory, which can be moved to another thread', async () => {
  const deflater = new BatchDeflater();
  const [first, second] = await Promise.all([deflater.deflate(text(100)), deflater.deflate(text(200))]);
  expect(first.buffer).not.toBe(second.buffer);
  expect(first.buffer.byteLength).toBe(first.length);
});
