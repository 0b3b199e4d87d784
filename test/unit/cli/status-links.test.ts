/** The links of the kit in `kit-connector status`. */
import { describe, expect, it } from 'vitest';
import { linkLines } from '../../../src/cli/status/view.ts';
import { widthOf } from '../../../src/cli/terminal/width.ts';
import type { StatusReport } from '../../../src/kit/local/api.ts';

type Link = NonNullable<StatusReport['links']>[number];

const plain = (_colour: string, text: string): string => text;
const linkOf = (changes: Partial<Link> = {}): Link => ({ name: 'eth0', reason: null, ...changes });
const lines = (links: StatusReport['links'], columns?: number) => linkLines(links, plain, columns);
/** Cells of a line, without the columns that are empty. */
const cells = (line: string | undefined) => line?.split(/ {2,}/u).filter(Boolean);

describe('The links in the status', () => {
  it('are left out where the kit has none, or the daemon is too old to report them', () => {
    expect(lines([])).toEqual([]);
    expect(lines(undefined)).toEqual([]);
  });

  it('show what is known of each: status, round trip, loss, rates, use of today, provider and address', () => {
    const [, row] = lines([
      linkOf({
        name: 'wwan0',
        type: 'cellular',
        status: 'online',
        latency_ms: 48.4,
        packet_loss_pct: 0.25,
        rx_bps: 12_345_678,
        tx_bps: 640_000,
        usage: { today_rx_gb: 1.26, today_tx_gb: 0.12, month_rx_gb: null, month_tx_gb: null },
        isp: 'Example Mobile',
        ip: '192.0.2.7',
      }),
    ]);
    expect(cells(row)).toEqual([
      'wwan0',
      'cellular',
      'online',
      '48 ms, 0.3 % lost',
      'down 12.3 Mbit/s, up 640 kbit/s',
      'today down 1.3 GB, up 120 MB',
      'Example Mobile 192.0.2.7',
    ]);
  });

  it('leave out what is unknown, and say so of a status', () => {
    const [, row] = lines([linkOf()]);
    expect(cells(row)).toEqual(['eth0', 'unknown']);
  });

  it('show one direction where only that is known', () => {
    const [, row] = lines([linkOf({ status: 'standby', rx_bps: 1_000 })]);
    expect(cells(row)).toEqual(['eth0', 'standby', 'down 1 kbit/s']);
  });

  it('have the reason of a link below it, and no line where there is none', () => {
    const shown = lines([
      linkOf({ name: 'wan0', status: 'offline', reason: 'no carrier; check the cable' }),
      linkOf({ name: 'wan1', status: 'online' }),
    ]);
    expect(shown.map(cells)).toEqual([
      ['links'],
      ['wan0', 'offline'],
      ['no carrier; check the cable'],
      ['wan1', 'online'],
    ]);
  });

  it('colour what is offline as bad, what works as good', () => {
    const paint = (colour: string, text: string): string => `<${colour}>${text}`;
    const shown = linkLines(
      [linkOf({ status: 'offline' }), linkOf({ status: 'standby' }), linkOf({ status: 'online' })],
      paint,
    );
    expect(shown.slice(1).map((line) => /<\w+>\w+/u.exec(line)?.[0])).toEqual([
      '<bad>offline',
      '<good>standby',
      '<good>online',
    ]);
  });

  it('fit the width of the terminal, with a long reason over several lines', () => {
    const reason =
      'the carrier refuses the SIM in this network, and no other network was found in twenty scans';
    const shown = lines([linkOf({ name: 'wwan0', status: 'offline', reason })], 40);
    for (const line of shown) expect(widthOf(line)).toBeLessThanOrEqual(40);
    expect(
      shown
        .slice(2)
        .map((line) => line.trim())
        .join(' '),
    ).toBe(reason);
  });
});
