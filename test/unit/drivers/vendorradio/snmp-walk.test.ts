/** Walks over tables of SNMP agents that do not count as they should. */
import snmp from 'net-snmp';
import { describe, expect, it } from 'vitest';
import { walk } from '../../../../drivers/vendorradio/snmp/snmp-session.ts';

const row = (oid: string): snmp.Varbind => ({ oid, type: snmp.ObjectType.Integer, value: 1 });

describe('a walk over a table', () => {
  it('ends when the rows of the agent go round in circles', async () => {
    let asked = 0;
    const rows = await walk('1.3', 1_000, async (from) => {
      asked += 1;
      return [row(from === '1.3.1' ? '1.3.2' : '1.3.1')];
    });
    expect([...rows.keys()]).toEqual(['1', '2']);
    expect(asked).toBe(3);
  });

  it('ends at the limit, below the table, and with an empty answer', async () => {
    let next = 0;
    const endless = await walk('1.3', 50, async () => [row(`1.3.${(next += 1)}`)]);
    expect(endless.size).toBe(50);
    expect((await walk('1.3', 50, async () => [row('1.4.1')])).size).toBe(0);
    expect((await walk('1.3', 50, async () => [])).size).toBe(0);
  });

  it('leaves out a counter that is longer than 64 bits', async () => {
    const value = Buffer.alloc(60_000, 0xff);
    const long: snmp.Varbind = { oid: '1.3.1', type: snmp.ObjectType.Counter64, value };
    const rows = await walk('1.3', 50, async (from) => (from === '1.3' ? [long, row('1.3.2')] : []));
    expect(rows.get('1')).not.toBeTypeOf('number');
    expect(rows.get('2')).toBe(1);
  });
});
