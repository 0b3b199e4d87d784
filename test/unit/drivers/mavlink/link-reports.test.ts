/** Links that cannot be opened: what status and doctor show of them. */
import { expect, it } from 'vitest';
import { mavlink } from '../../../../drivers/mavlink/mavlink.ts';
import { eventually } from '../../../support/eventually.ts';
import { hubLab } from '../../../support/kit/hub-lab.ts';
import { freePort } from '../../../support/ports.ts';

it('reports of each link what was tried, the answer and the next attempt', async () => {
  const hub = hubLab({ configured: ['drones'] });
  const [closed, open] = [await freePort(), await freePort()];
  const links = [
    { kind: 'tcp_client', host: '127.0.0.1', port: closed, name: 'bench' },
    { kind: 'udp_listen', host: '127.0.0.1', port: open },
  ];
  void hub.run(mavlink, 'drones', { options: { links } });
  try {
    const devices = () => hub.hub.drivers()[0]?.devices ?? [];
    await eventually(
      'both links are reported',
      () => devices().length === 2 && devices().every(({ state }) => state !== 'starting'),
    );
    expect(devices()).toMatchObject([
      { name: 'bench', tried: `tcp client 127.0.0.1:${closed}`, state: 'offline', asset_key: null },
      { name: `udp listen 127.0.0.1:${open}`, state: 'online', reason: null, next_try_at: null },
    ]);
    const [bench] = devices();
    expect(bench?.reason).toMatch(/refuses the connection/u);
    expect(Date.parse(bench?.next_try_at ?? '')).toBeGreaterThanOrEqual(Date.parse(bench?.tried_at ?? ''));
  } finally {
    await hub.stop();
  }
});
