/** Paths of numbers in messages. */
import { describe, expect, it } from 'vitest';
import { fieldPath, numberAt, numberPaths } from '../../../../src/cloud/history/figures.ts';

describe('The numbers of a message', () => {
  const wans = [
    { name: 'eth0', latency_ms: 1, usage: { month_rx_gb: 10 } },
    { name: 'eth0.100', latency_ms: 2, usage: { month_rx_gb: 20 } },
    { name: 'ppp.7.x', latency_ms: 3 },
  ];

  it('are found by the paths that they are listed under, also where a name has points, as that of a VLAN', () => {
    const found = numberPaths({ wans }).map((path) => [path, numberAt({ wans }, fieldPath(path))]);
    expect(Object.fromEntries(found)).toEqual({
      'wans.eth0.latency_ms': 1,
      'wans.eth0.usage.month_rx_gb': 10,
      'wans.eth0.100.latency_ms': 2,
      'wans.eth0.100.usage.month_rx_gb': 20,
      'wans.ppp.7.x.latency_ms': 3,
    });
  });

  it('are none where the path leads nowhere', () => {
    for (const path of [
      'wans.eth1.latency_ms',
      'wans.eth0.101.latency_ms',
      'wans.eth0',
      'other',
      'wans.eth0.100',
    ]) {
      expect(numberAt({ wans }, fieldPath(path))).toBeUndefined();
    }
  });
});
