/** Changes that depend on what a client has read, merge patches, sockets of kits that are none, and forms for other programs. */
import { once } from 'node:events';
import { gunzipSync } from 'node:zlib';
import { request } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { WebSocket } from 'ws';
import { channels } from '../../../../src/contract/topics.ts';
import { asset_id, kit_id, samples } from '../../../support/contract-samples.ts';
import { type ServiceLab, startServiceLab } from '../../../support/service/service-lab.ts';

let lab: ServiceLab;
beforeEach(async () => {
  lab = await startServiceLab(kit_id);
  await lab.publish(channels.state, samples['kitState'] ?? {});
});
afterEach(async () => lab.stop());

async function ask(path: string, init: { method?: string; headers?: object; body?: object } = {}) {
  const headers = { 'x-api-key': lab.key, 'content-type': 'application/json', ...init.headers };
  const body = init.body && { body: JSON.stringify(init.body) };
  return fetch(`${lab.url}${path}`, { method: init.method ?? 'GET', headers, ...body });
}
const created = z.object({ id: z.string() });
const detailed = z.object({ metadata: z.record(z.string(), z.unknown()), name: z.string() });

describe('A change with If-Match', () => {
  const places = {
    asset: async () => {
      const body = { name: 'Van', type: 'vehicle', metadata: { a: 1, b: { c: 2, d: 3 } } };
      const { id } = created.parse(
        await (await ask(`/api/kits/${kit_id}/assets`, { method: 'POST', body })).json(),
      );
      return [`/api/kits/${kit_id}/assets/${id}`, { name: 'Van 2' }] as const;
    },
    alarm: async () => {
      await lab.publish(channels.event(asset_id, 'motion'), { detected: true });
      const list = z.object({ alarms: z.array(created) }).parse(await (await ask('/api/alarms')).json());
      return [`/api/kits/${kit_id}/alarms/${list.alarms[0]?.id}`, { note: 'seen' }] as const;
    },
  };

  it.each(Object.entries(places))(
    'of an %s is refused when it was changed since it was read',
    async (_, make) => {
      const [path, body] = await make();
      const first = await ask(path, { headers: { 'accept-encoding': 'gzip' } });
      const tag = first.headers.get('etag') ?? '';
      // nginx#1570: a weak tag never matches.
      expect(tag).toMatch(/^"/u);
      const change = async (match: string) =>
        (await ask(path, { method: 'PATCH', body, headers: { 'if-match': match } })).status;
      expect(await change(`W/${tag}`)).toBe(412);
      const both = await Promise.all([change(tag), change(tag)]);
      expect(both.sort((a, b) => a - b)).toEqual([200, 412]);
      expect(await change('"other"')).toBe(412);
      expect(await change('*')).toBe(200);
      const now = (await ask(path)).headers.get('etag') ?? '';
      expect(await change(`"other", ${now}`)).toBe(200);
      const missing = path.replace(/[^/]+$/u, '00000000-0000-4000-8000-000000000000');
      expect((await ask(missing, { method: 'PATCH', body, headers: { 'if-match': tag } })).status).toBe(404);
    },
  );

  // https://github.com/hapijs/hapi/issues/3956, https://github.com/mdn/content/issues/4343, https://github.com/curl/curl/issues/5610
  it('names what is wrong with a tag that never matches', async () => {
    const [path] = await places.asset();
    const tag = (await ask(path)).headers.get('etag') ?? '';
    const said = async (match: string) => {
      const init = { method: 'PATCH', body: { name: 'Van 3' }, headers: { 'if-match': match } };
      const response = await ask(path, init);
      return `${response.status} ${await response.text()}`;
    };
    expect(await said(tag.replaceAll('"', ''))).toMatch(/^400 .*If-Match.*quotation marks/u);
    expect(await said(`W/${tag}`)).toMatch(/^412 .*proxy/u);
    expect(await said(tag.replace(/"$/u, '-gzip"'))).toMatch(/^412 .*proxy/u);
    expect(await said('"other"')).not.toContain('proxy');
  });

  it('merges metadata as a merge patch, and replaces it otherwise', async () => {
    const [path] = await places.asset();
    const patch = async (type: string, metadata: object) => {
      const response = await ask(path, {
        method: 'PATCH',
        body: { metadata },
        headers: { 'content-type': type },
      });
      return response.ok ? detailed.parse(await response.json()).metadata : response.status;
    };
    const merge = 'application/merge-patch+json';
    expect(await patch(merge, { b: { d: null, e: 4 }, f: 5 })).toEqual({ a: 1, b: { c: 2, e: 4 }, f: 5 });
    expect(await patch(merge, { f: 'x'.repeat(16_400) })).toBe(422);
    expect(await patch('application/json', { g: 6 })).toEqual({ g: 6 });
  });
});

describe('The socket of a kit that does not exist, with a key for all kits', () => {
  const path = '/api/kits/99999999-9999-4999-8999-999999999999/ws';
  const open = async (withKey: boolean) => {
    const key = await lab.giveKey({ kits: '*' });
    const headers = withKey ? { 'x-api-key': key } : {};
    const socket = new WebSocket(`${lab.url.replace('http', 'ws')}${path}`, { headers });
    socket.on('error', () => undefined);
    return { socket, key };
  };

  it('is refused in the handshake', async () => {
    const { socket } = await open(true);
    const [, response] = (await once(socket, 'unexpected-response')) as [unknown, { statusCode: number }];
    expect(response.statusCode).toBe(404);
  });

  it('is closed after the first frame', async () => {
    const { socket, key } = await open(false);
    await once(socket, 'open');
    socket.send(JSON.stringify({ type: 'auth', api_key: key }));
    expect((await once(socket, 'close'))[0]).toBe(4403);
  });
});

describe('Forms for other programs', () => {
  const fix = (lat: number, lon: number, alt_m: number | null = null) =>
    lab.publish(channels.feed(asset_id, 'gps'), { lat, lon, alt_m, ground_speed: null, heading: null });

  it('have decimals without exponents in GPX, and KML of the same fixes', async () => {
    await fix(0.000_000_1, -0.000_000_2, 1e-7);
    const path = `/api/kits/${kit_id}/assets/${asset_id}/track`;
    const gpx = await (await ask(`${path}?format=gpx`)).text();
    expect(gpx).toContain('<trkpt lat="0.0000001" lon="-0.0000002"><ele>0.0000001</ele>');
    const kml = await ask(`${path}?format=kml`);
    expect(kml.headers.get('content-type')).toBe('application/vnd.google-earth.kml+xml');
    expect(await kml.text()).toContain('<coordinates>-0.0000002,0.0000001,0.0000001</coordinates>');
  });

  // Each place: longitude and latitude. A fix on the line is no line of one place, which readers refuse (RFC 7946, section 3.1.4).
  it.each([
    ['179,10 -179,12', '179,10 180,11; -180,11 -179,12'],
    ['179,10 -180,11 -179,12', '179,10 180,11; -180,11 -179,12'],
    ['179,10 -180,11', '179,10 180,11'],
    ['-180,11 179,10', '180,11 179,10'],
    ['179,10 -180,11 179,12', '179,10 180,11; 180,11 179,12'],
    // mapbox/togeojson#46, mapbox/mapbox-maps-android#239: one fix without another is no line of one place, either.
    ['179,10', '179,10 179,10'],
  ])('cut lines at 180 degrees: %s', async (places, lines) => {
    for (const place of places.split(' ')) {
      const [lon = 0, lat = 0] = place.split(',').map(Number);
      await fix(lat, lon);
    }
    const track = z
      .object({ geometry: z.object({ coordinates: z.array(z.array(z.array(z.number()))) }) })
      .parse(await (await ask(`/api/kits/${kit_id}/assets/${asset_id}/track`)).json());
    expect(track.geometry.coordinates.map((line) => line.join(' ')).join('; ')).toBe(lines);
  });

  it('have a point for a lone fix in KML, and lines that follow the ground (CesiumGS/cesium#8760)', async () => {
    const path = `/api/kits/${kit_id}/assets/${asset_id}/track?format=kml`;
    await fix(47, 8);
    expect(await (await ask(path)).text()).toContain('<Point><coordinates>8,47</coordinates></Point>');
    await fix(47.01, 8);
    const line = '<LineString><tessellate>1</tessellate><coordinates>8,47 8,47.01</coordinates></LineString>';
    expect(await (await ask(path)).text()).toContain(line);
  });

  it('have a column for each field in flat CSV, and NDJSON compressed', async () => {
    await lab.publish(channels.feed(asset_id, 'battery'), { voltage: 24, cells: [1, 2], more: { a: '=1' } });
    await lab.publish(channels.feed(asset_id, 'battery'), { voltage: 23 });
    const path = `/api/kits/${kit_id}/export?feed=battery`;
    const lines = (await (await ask(`${path}&format=flat_csv`)).text()).split('\r\n');
    expect(lines[0]).toBe('time,time_quality,channel,asset_id,feed,epoch,seq,cells,more.a,voltage');
    expect(lines[1]).toMatch(/,"\[1,2\]",'=1,24$/u);
    expect(lines[2]).toMatch(/,,,23$/u);
    const packed = await new Promise<Buffer>((resolve) => {
      const headers = { 'x-api-key': lab.key, 'accept-encoding': 'gzip' };
      request(`${lab.url}${path}`, { headers }, (response) => {
        expect(response.headers['content-encoding']).toBe('gzip');
        const parts: Buffer[] = [];
        response
          .on('data', (part: Buffer) => parts.push(part))
          .on('end', () => resolve(Buffer.concat(parts)));
      }).end();
    });
    expect(gunzipSync(packed).toString('utf8').trim().endsWith('{"next":null}')).toBe(true);
  });

  it.each([
    ['excel_comma', 'time_utc,time_quality', /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,.*,Zürich,23\.5$/u],
    ['excel_semicolon', 'time_utc;time_quality', /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d;.*;Zürich;23,5$/u],
  ])(
    'are opened by Excel as %s (terminal42/contao-leads#31, opendidac/opendidac#681)',
    async (form, head, row) => {
      await lab.publish(channels.feed(asset_id, 'battery'), { depot: 'Zürich', voltage: 23.5 });
      await fix(47.5, 8);
      await lab.publish(channels.telemetry, { battery: 80.5 });
      const bytes = async (path: string) => {
        const answer = await ask(`/api/kits/${kit_id}${path}`);
        expect(answer.headers.get('content-type')).toBe('text/csv; charset=utf-8');
        const text = Buffer.from(await answer.arrayBuffer());
        expect([...text.subarray(0, 3)]).toEqual([0xef, 0xbb, 0xbf]);
        return text.subarray(3).toString().split('\r\n');
      };
      const [first = '', second = ''] = await bytes(`/export?feed=battery&format=${form}`);
      expect(first.startsWith(head)).toBe(true);
      expect(second).toMatch(row);
      const number = (text: string) => (form === 'excel_comma' ? text : text.replace('.', ','));
      const [, fixed = ''] = await bytes(`/assets/${asset_id}/track?format=${form}`);
      expect(fixed).toContain(number('47.5'));
      const series = await bytes(`/series?select=kit:battery&names=battery&shape=${form}`);
      expect(series.some((line) => line.endsWith(number('80.5')))).toBe(true);
    },
  );

  it('have a row of nulls in a gap, and days of a time zone', async () => {
    const at = (time: string, battery: number) =>
      lab.publish(channels.telemetry, { battery }, { said_ms: Date.parse(time) });
    const today = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);
    await at(`${today}T10:00:00Z`, 80);
    await at(`${today}T10:01:00Z`, 79);
    await at(`${today}T10:30:00Z`, 70);
    const span = `select=kit:battery&names=battery&shape=rows&from=${today}T00:00:00Z&to=${today}T23:59:59Z`;
    const rows: unknown = await (await ask(`/api/kits/${kit_id}/series?${span}&bucket_s=60`)).json();
    expect(rows).toEqual([
      { time: `${today}T10:00:00.000Z`, battery: 80 },
      { time: `${today}T10:01:00.000Z`, battery: 79 },
      { time: `${today}T10:02:00.000Z`, battery: null },
      { time: `${today}T10:30:00.000Z`, battery: 70 },
    ]);
    const days = await (
      await ask(`/api/kits/${kit_id}/series?${span}&bucket_s=86400&tz=Asia/Kathmandu`)
    ).text();
    expect(days).toMatch(/^\[\{"time":"[\d-]+T18:15:00\.000Z"/u);
    expect((await ask(`/api/kits/${kit_id}/series?${span}&tz=Mars/Olympus`)).status).toBe(400);
  });

  it('show the newest events of a kit whose clock is two hours ahead', async () => {
    await lab.publish(
      channels.event(asset_id, 'motion'),
      { detected: true },
      { said_ms: Date.now() + 7_200_000 },
    );
    const page = z
      .object({ events: z.array(z.object({ type: z.string() })) })
      .parse(await (await ask(`/api/kits/${kit_id}/events?types=motion`)).json());
    expect(page.events).toHaveLength(1);
  });
});
