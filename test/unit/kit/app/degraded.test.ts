/** The sentences by which a kit reports that it is not at its best. */
import { describe, expect, it } from 'vitest';
import { withheldStreams } from '../../../../src/kit/app/degraded.ts';

const fault = 'rtsp:// would send the password without TLS; change it';

describe('the sentence about cameras without video', () => {
  it('names the cameras whose stream is withheld, and what to do', () => {
    const assets = [
      { name: 'Gate', stream_fault: fault },
      { name: 'Yard', stream_fault: null },
      { name: 'Roof', stream_fault: fault },
    ];
    expect(withheldStreams(assets)).toEqual([`no video of Gate, Roof: ${fault}`]);
  });

  it('stays one sentence however many cameras there are', () => {
    const assets = Array.from({ length: 64 }, (_, index) => ({ name: `C${index}`, stream_fault: fault }));
    expect(withheldStreams(assets)).toEqual([`no video of C0, C1, C2, C3 and 60 more: ${fault}`]);
  });

  it('is left out while every stream can be used', () => {
    expect(withheldStreams([{ name: 'Gate', stream_fault: null }])).toEqual([]);
  });
});
