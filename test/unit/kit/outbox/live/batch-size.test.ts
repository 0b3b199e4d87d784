/** A batch takes as many rows as suit the link, and bytes in proportion. */
import { describe, expect, it } from 'vitest';
import { BatchSize } from '../../../../../src/kit/outbox/live/backlog.ts';

const kib = 1_024;

function sized() {
  const form = { batch_rows: 400, batch_bytes: 128 * kib };
  return { form, size: new BatchSize(form) };
}

describe('the size of a batch', () => {
  it('has fewer bytes on a narrow link, but not fewer than 64 KiB', () => {
    const { form, size } = sized();
    size.set(300);
    expect(form).toEqual({ batch_rows: 300, batch_bytes: 96 * kib });
    size.set(50);
    expect(form).toEqual({ batch_rows: 50, batch_bytes: 64 * kib });
    size.set(400);
    expect(form).toEqual({ batch_rows: 400, batch_bytes: 128 * kib });
  });

  it('is moderate until the link is measured', () => {
    const { form } = sized();
    expect(form).toEqual({ batch_rows: 200, batch_bytes: 64 * kib });
  });

  it('is halved by a refusal, whatever suits the link, and grows again after 64 accepted batches', () => {
    const { size } = sized();
    size.set(400);
    size.shrink(400);
    size.set(400);
    expect(size.rows).toBe(200);
    for (let batch = 0; batch < 64; batch += 1) size.accepted();
    size.set(400);
    expect(size.rows).toBe(400);
  });

  it('never falls below one message', () => {
    const { size } = sized();
    for (let refusal = 0; refusal < 20; refusal += 1) size.shrink(size.rows);
    expect(size.rows).toBe(1);
  });
});
