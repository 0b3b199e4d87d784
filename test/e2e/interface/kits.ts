/** Statements on kits, their telemetry and links. The numbers are those of statements.md. */
import { describe, expect, it } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import type { Scene } from '../../support/kit/interface-scene.ts';
import { played } from '../../support/kit/played-kit.ts';

const uuid = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/u;
const utc = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/u;
const location = {
  latitude: 47.39,
  longitude: 8.54,
  altitude: 455.2,
  source: 'satellite',
  stale: false,
  kit_location: 'Zürich',
};

/** Links by themselves always have their usage. */
const links = () => {
  const usage = { today_rx_gb: null, today_tx_gb: null, month_rx_gb: null, month_tx_gb: null };
  return played.wans.map((link) => ({ usage, ...link }));
};

export function describeKits(scene: Scene): void {
  describe('kits', () => {
    it('1.1, 3.1, 12.1, 13.2 lists the kits of the key as an array whose ids open all other paths', async () => {
      const { status, body } = await scene.ask('/api/kits');
      expect(status).toBe(200);
      expect(body).toMatchObject([{ id: scene.kit_id }]);
      expect((await scene.ask(`/api/kits/${body[0]?.id}/telemetry`)).status).toBe(200);
    });

    it('2.1, 2.2, 2.3, 3.2, 3.3, 3.4 the kit has a name, is online, and was seen a moment ago', async () => {
      const { headers, body } = await scene.ask('/api/kits');
      const { id = '', name, online, last_seen = '' } = body[0] ?? {};
      expect(headers.get('content-type')).toBe('application/json');
      expect(id).toMatch(uuid);
      expect([name, online]).toEqual(['Kit Seven', true]);
      expect(last_seen).toMatch(utc);
      expect(Math.abs(Date.now() - Date.parse(last_seen))).toBeLessThan(60_000);
    });

    it('3.5, 3.6, 3.7, 5.1, 5.2, 6.5, 6.6 live has location, links, battery and gateway', async () => {
      const { body } = await scene.ask('/api/kits');
      const { wans, battery, battery_charging, gateway } = played;
      expect(body[0]?.live).toEqual({ location, wans, battery, battery_charging, gateway });
    });

    it('1.2, 4.1, 4.2, 4.3, 4.4, 7.1, 7.2, 12.2 telemetry is the whole of it in one call', async () => {
      const { status, body } = await scene.ask(`${scene.path}/telemetry`);
      expect(status).toBe(200);
      const kit_name = 'Kit Seven';
      expect(body).toEqual({ online: true, kit_id: scene.kit_id, kit_name, location, ...played });
    });

    it('6.1, 6.2, 6.3, 6.4, 6.6, 12.4 links are listed, one for each interface', async () => {
      const { status, body } = await scene.ask(`${scene.path}/links`);
      expect([status, body]).toEqual([200, { links: links() }]);
    });

    it.each([
      ['eth3', 'eth3'],
      ['ETH4', 'eth4'],
      ['wwan0', 'Wwan0'],
      ['satellite', 'eth3'],
      ['Cellular', 'Wwan0'],
    ])('12.5 the link "%s" is %s, by interface name or type, whatever the case', async (wanted, name) => {
      const { status, body } = await scene.ask(`${scene.path}/links/${wanted}`);
      expect([status, body.name]).toEqual([200, name]);
      expect(body).toEqual(links().find((link) => link.name === name));
    });

    it('12.15 single parts have addresses of their own', async () => {
      const { battery, battery_charging, gateway, clients, speedtest } = played;
      const parts = {
        location,
        gateway,
        speedtest,
        battery: { battery, battery_charging },
        clients: { clients },
      };
      for (const [path, body] of Object.entries(parts)) {
        expect((await scene.ask(`${scene.path}/${path}`)).body).toEqual(body);
      }
      expect((await scene.ask(`${scene.path}/queue`)).body).toMatchObject({ online: true, refused: 0 });
    });

    it('15.2 an unknown link is 404 as a problem that names those that there are', async () => {
      const { status, headers, body } = await scene.ask(`${scene.path}/links/eth9`);
      expect([status, headers.get('content-type')]).toEqual([404, 'application/problem+json']);
      expect(body.detail).toContain('eth3, eth4, Wwan0');
    });

    it('13.1, 13.3 a request without a key is 401, and so is one with a wrong key', async () => {
      expect((await scene.ask('/api/kits', { key: null })).status).toBe(401);
      const wrong = `kc_000000000000_${'A'.repeat(32)}`;
      expect((await scene.ask('/api/kits', { key: wrong })).status).toBe(401);
    });

    it('13.2, 13.3 a key of another kit sees nothing of this one', async () => {
      const stranger = await scene.newKey('--kit', '00000000-0000-4000-8000-000000000001');
      expect((await scene.ask('/api/kits', { key: stranger })).body).toMatchObject([{ live: null }]);
      for (const path of ['', '/telemetry', '/links', '/assets', `/assets/${scene.drone}/telemetry`]) {
        expect((await scene.ask(scene.path + path, { key: stranger })).status).toBe(404);
      }
    });

    it('13.3 a key that may only read changes nothing', async () => {
      const reader = await scene.newKey('--kit', scene.kit_id, '--scope', 'read');
      const body = { name: 'Truck', type: 'vehicle' };
      expect((await scene.ask(`${scene.path}/assets`, { key: reader, body })).status).toBe(403);
    });

    it('2.4 every path of the document has the prefix /api', async () => {
      const { body } = await scene.ask('/openapi.json', { key: null });
      for (const path of Object.keys(body.paths)) expect(path).toMatch(/^\/api\//u);
    });

    it('16.3 a key that asks too fast gets the time when to ask again', { timeout: 120_000 }, async () => {
      let refused: Response | undefined;
      const key = await scene.newKey();
      const cancel = `${scene.url}/api/kits/${scene.kit_id}/tasks/00000000-0000-4000-8000-000000000003/cancel`;
      // A slow machine may ask so slowly that one round is within the limit.
      await eventually(
        'a request is refused',
        async () => {
          const asked = Array.from({ length: 250 }, async () =>
            fetch(cancel, { method: 'POST', headers: { 'x-api-key': key } }),
          );
          refused = (await Promise.all(asked)).find(({ status }) => status === 429);
          return refused !== undefined;
        },
        60_000,
      );
      expect(Number(refused?.headers.get('retry-after'))).toBeGreaterThan(0);
      await eventually(
        'the key is free again',
        async () => (await fetch(cancel, { method: 'POST', headers: { 'x-api-key': key } })).status === 404,
      );
    });

    it('1.1, 3.5, 12.1, 12.3 a kit of the key that never reported is listed without live and answers 503', async () => {
      const silent = '00000000-0000-4000-8000-000000000002';
      const key = await scene.newKey('--kit', silent);
      expect((await scene.ask('/api/kits', { key })).body).toMatchObject([
        { id: silent, name: silent, online: false, live: null },
      ]);
      const { status, headers } = await scene.ask(`/api/kits/${silent}/telemetry`, { key });
      expect([status, headers.get('retry-after')]).toEqual([503, '30']);
      const body = { name: 'Truck', type: 'vehicle' };
      expect((await scene.ask(`/api/kits/${silent}/assets`, { key, body })).status).toBe(201);
    });

    it('12.17 reads online beside the telemetry that is cached', async () => {
      const { body } = await scene.ask(`${scene.path}/telemetry`);
      expect([body.online, Object.keys(body)[0]]).toEqual([true, 'online']);
    });
  });
}
