/** Stations of a UDP endpoint: their addresses may be forged. */
import { describe, expect, it } from 'vitest';
import { mayReceive, Stations } from '../../../../../drivers/mavlink/forward/udp.ts';

const frame_bytes = 21;

function stationAt(address: string) {
  const stations = new Stations({ peers_max: 4, joined: () => undefined, left: () => undefined });
  const from = { address, port: 14_550, family: 'IPv4', size: frame_bytes } as const;
  const hears = (): void => stations.received(from, frame_bytes, 0);
  const receives = (frames: number): number =>
    Array.from({ length: frames }, () =>
      stations.recent(0).filter((each) => mayReceive(each, frame_bytes)),
    ).flat().length;
  hears();
  return { hears, receives };
}

describe('A station of a UDP endpoint', () => {
  it.each(['203.0.113.5', '::ffff:203.0.113.5'])(
    'in the internet, at %s, receives three times the bytes that came from it',
    (address) => {
      const { hears, receives } = stationAt(address);
      expect(receives(100)).toBe(3);
      hears();
      expect(receives(100)).toBe(3);
    },
  );

  it.each(['192.168.1.20', '100.101.102.103', '127.0.0.1'])('at %s receives all', (address) => {
    expect(stationAt(address).receives(100)).toBe(100);
  });
});
