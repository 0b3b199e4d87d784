/** Statements on assets, their feeds, commands and tasks. The numbers are those of statements.md. */
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { serverFrame, type ServerFrame } from '../../../src/cloud/api/frames.ts';
import { sleep } from '../../../src/platform/time.ts';
import { eventually } from '../../support/eventually.ts';
import type { Answer, Body, Scene } from '../../support/kit/interface-scene.ts';
import { playedDrone } from '../../support/kit/played-kit.ts';

const uuid = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/u;
const utc = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/u;
/** A text of this form. */
const like = (form: RegExp): unknown => expect.stringMatching(form);
const timestamp = '2026-11-21T10:00:00.000Z';
const nobody = '00000000-0000-4000-8000-000000000009';

/** To be called first: it knows all assets that there are. */
export function describeAssets(scene: Scene): void {
  describe('assets', () => {
    const create = async (body: object): Promise<Answer> => scene.ask(`${scene.path}/assets`, { body });
    const send = async (asset_id: string, name: string, payload?: object): Promise<Answer> =>
      scene.ask(`${scene.path}/assets/${asset_id}/commands/${name}`, {
        body: payload === undefined ? {} : { payload },
      });
    const ended = async (sent: Answer): Promise<Body> => {
      let task = sent.body;
      await eventually(`${task.command_name} is over`, async () => {
        // No faster than a key may ask.
        await sleep(150, new AbortController().signal);
        task = (await scene.ask(sent.headers.get('location') ?? '')).body;
        return ['completed', 'failed'].includes(task.status);
      });
      return task;
    };

    it('1.3, 8.1, 8.3, 8.4, 8.5, 8.6, 8.7, 8.8, 8.9, 12.7 lists the assets of the connector by type, with these fields', async () => {
      const { status, body } = await scene.ask(`${scene.path}/assets`);
      expect(status).toBe(200);
      const plain = { status: 'online', last_seen_at: like(utc), vendor: null, model: null };
      // Of the media server at the kit's own service, of the service elsewhere.
      const whep_url =
        scene.form === 'kit'
          ? like(/^http:\/\/127\.0\.0\.1:8889\/[\w-]+\/whep$/u)
          : like(
              new RegExp(`^http://127\\.0\\.0\\.1:\\d+${scene.path}/assets/${scene.vendorcam}/whep$`, 'u'),
            );
      const nowhere = { lat: null, lon: null, parent_id: null, whep_url: null };
      expect(body.assets).toEqual([
        {
          ...plain,
          ...nowhere,
          id: scene.vendorcam,
          asset_key: 'vendorcam',
          name: 'Gate',
          type: 'camera',
          protocol: 'vendorcam',
          whep_url,
        },
        {
          ...plain,
          ...nowhere,
          id: scene.onvif,
          asset_key: 'onvif',
          name: 'Yard',
          type: 'camera',
          protocol: 'onvif',
          parent_id: scene.vendorcam,
        },
        {
          ...plain,
          ...nowhere,
          id: scene.drone,
          asset_key: 'drone',
          name: 'Falcon',
          type: 'drone',
          protocol: 'mavlink',
          vendor: 'ArduPilot',
          model: 'Quad',
          lat: 47.4,
          lon: 8.55,
        },
        {
          ...plain,
          ...nowhere,
          id: scene.gateway,
          asset_key: 'gateway',
          name: 'gw-7',
          type: 'gateway',
          protocol: 'vendorradio',
          lat: 47.39,
          lon: 8.54,
          whep_url: null,
        },
      ]);
    });

    it('1.6, 11.1, 11.2, 11.3, 12.12 reads the newest message of each feed, and only feeds that have one', async () => {
      const feeds = async (id: string): Promise<unknown> =>
        (await scene.ask(`${scene.path}/assets/${id}/telemetry`)).body;
      expect(await feeds(scene.drone)).toEqual(playedDrone);
      expect(await feeds(scene.vendorcam)).toEqual({
        status: { online: true, motion_alarm: true, ai_alarm: true },
        motion: { detected: true, timestamp },
        ai_detection: { detected: true, types: ['people', 'vehicle'], timestamp },
      });
      expect(await feeds(scene.onvif)).toEqual({
        status: { online: true, timestamp },
        motion: { detected: false },
      });
      const { body } = await create({ name: 'Silent', type: 'sensor' });
      expect(await feeds(body.id)).toEqual({});
    });

    it('1.4, 8.2, 8.10, 8.11, 12.6, 12.16 registers a partner asset', async () => {
      const wanted = {
        name: 'Truck',
        type: 'fire engine',
        vendor: 'MAN',
        model: 'TGM',
        metadata: { crew: 6 },
        parent_id: scene.drone,
      };
      const { status, headers, body } = await create(wanted);
      expect(status).toBe(201);
      const { id } = body;
      expect(headers.get('location')).toBe(`${scene.path}/assets/${id}`);
      expect(body).toEqual({
        ...wanted,
        id: like(uuid),
        asset_key: `${scene.kit_id}:partner:${id}`,
        kit_id: scene.kit_id,
        protocol: 'partner',
        status: 'online',
        last_seen_at: like(utc),
      });
      const bare = await create({ name: 'Van', type: 'vehicle' });
      expect(bare.body).toMatchObject({ vendor: null, model: null, metadata: {}, parent_id: null });
    });

    it.each([
      [{ type: 'vehicle' }, '#/name'],
      [{ name: 'Truck' }, '#/type'],
      [{ name: 'Truck', type: 'vehicle', parent_id: nobody }, '#/parent_id'],
      [{ name: 'Truck', type: 'vehicle', metadata: 'none' }, '#/metadata'],
    ])('12.6, 15.2 refuses %j and names %s', async (body, pointer) => {
      const answer = await create(body);
      expect(answer.status).toBe(422);
      expect(answer.body.errors).toMatchObject([{ pointer }]);
    });

    it('1.5, 8.8, 8.12, 11.4, 12.13, 12.14, 14.2, 14.3 stores a pushed fix, moves the asset and tells those who watch, at once', async () => {
      const { body: truck } = await create({ name: 'Mover', type: 'vehicle' });
      const frames = await watch(truck.id);
      const fix = { lat: 47.41, lon: 8.56, alt_m: 450.5, bearing: 90, speed_mps: 5.5 };
      const pushed = await scene.ask(`${scene.path}/assets/${truck.id}/location`, { body: fix });
      expect([pushed.status, pushed.text]).toEqual([204, '']);
      const gps = { ...fix, source: 'api', timestamp: like(utc) };
      expect((await scene.ask(`${scene.path}/assets/${truck.id}/telemetry`)).body).toEqual({ gps });
      const { body } = await scene.ask(`${scene.path}/assets`);
      const listed = body.assets.find(({ id }) => id === truck.id);
      expect(listed).toMatchObject({ lat: 47.41, lon: 8.56 });
      expect(listed).not.toHaveProperty('alt_m');
      await eventually('the fix is told', () => frames.some(({ type }) => type === 'asset'));
      expect(frames[0]).toMatchObject({ type: 'snapshot', assets: [{ id: truck.id, lat: null }] });
      expect(frames.find(({ type }) => type === 'feed')).toMatchObject({
        asset_id: truck.id,
        feed: 'gps',
        message: { data: fix },
      });
      expect(frames.find(({ type }) => type === 'asset')).toMatchObject({
        asset: { lat: 47.41, alt_m: 450.5 },
      });
    });

    it.each([
      { lon: 8 },
      { lat: 47 },
      { lat: 91, lon: 8 },
      { lat: 47, lon: 8, bearing: 361 },
      { lat: '47', lon: 8 },
    ])('12.13, 16.1 takes no fix like %j', async (fix) => {
      const { body } = await create({ name: 'Lost', type: 'vehicle' });
      expect((await scene.ask(`${scene.path}/assets/${body.id}/location`, { body: fix })).status).toBe(422);
    });

    it('9.1, 9.2, 9.3, 12.8 lists the enabled commands with their definitions', async () => {
      const { body } = await scene.ask(`${scene.path}/assets/${scene.vendorcam}/commands`);
      const names = body.commands.map(({ name }) => name);
      expect(names.sort((a, b) => a.localeCompare(b))).toEqual([
        'ptz_move',
        'ptz_preset',
        'set_motion_detection',
      ]);
      const { body: ofDrone } = await scene.ask(`${scene.path}/assets/${scene.drone}/commands`);
      const disarm = ofDrone.commands.find(({ name }) => name === 'disarm');
      expect(disarm).toEqual({
        id: like(uuid),
        name: 'disarm',
        description: 'Plays disarm.',
        risk_level: 'high',
        requires_approval: true,
        input_schema: {},
      });
    });

    it('1.7, 10.1, 10.2, 12.10, 12.16, 14.1 sends a command: a pending task at first', async () => {
      const payload = { lat: 47.4, lon: 8.5, alt_m: 500 };
      const sent = await send(scene.drone, 'goto_waypoint', payload);
      expect(sent.status).toBe(202);
      expect(sent.body).toMatchObject({
        id: like(uuid),
        asset_id: scene.drone,
        command_name: 'goto_waypoint',
        payload,
        status: 'pending',
        result: {},
        requested_by: like(uuid),
        created_at: like(utc),
      });
      expect(sent.headers.get('location')).toBe(`${scene.path}/tasks/${sent.body.id}`);
      expect(await ended(sent)).toMatchObject({ status: 'completed', payload, result: { reached: payload } });
    });

    it('10.3, 10.5 the task runs and completes, as the WebSocket tells', async () => {
      const frames = await watch(scene.drone);
      const { body } = await send(scene.drone, 'goto_waypoint', { lat: 1, lon: 2, alt_m: 3 });
      const steps = (): readonly string[] =>
        frames.flatMap((frame) =>
          frame.type === 'task' && frame.task.id === body.id ? [frame.task.status] : [],
        );
      await eventually('completed', () => steps().includes('completed'));
      expect([...new Set(steps())]).toEqual(['pending', 'running', 'completed']);
    });

    it('10.4, 15.1 what the drone refuses is a task that failed, with the reason in its result', async () => {
      const sent = await send(scene.drone, 'arm');
      expect(sent.status).toBe(202);
      const { status, result } = await ended(sent);
      expect([status, result.error]).toEqual(['failed', 'the drone refuses to arm: compass not calibrated']);
    });

    it.each([
      ['drone', 'disarm', undefined],
      ['drone', 'return_home', {}],
      ['drone', 'set_mode', { mode: 'LOITER' }],
      ['drone', 'goto_waypoint', { lat: 47, lon: 8, alt_m: 500 }],
      ['vendorcam', 'ptz_move', { direction: 'left', speed: 64 }],
      ['vendorcam', 'ptz_preset', { preset_id: 3 }],
      ['vendorcam', 'set_motion_detection', { enabled: true }],
      ['onvif', 'ptz_move', { direction: 'stop', speed: 0.5 }],
      ['onvif', 'ptz_preset', { preset_token: 'gate' }],
    ] as const)('12.9, 12.11 %s takes %s with %j', async (asset, name, payload) => {
      const sent = await send(scene[asset], name, payload);
      expect(sent.status).toBe(202);
      expect((await ended(sent)).status).toBe('completed');
    });

    it.each([
      ['drone', 'set_mode', { mode: 'FLY' }],
      ['drone', 'goto_waypoint', { lat: 47, lon: 8 }],
      ['drone', 'goto_waypoint', { lat: 91, lon: 8, alt_m: 500 }],
      ['vendorcam', 'ptz_move', { direction: 'in' }],
      ['drone', 'disarm', { now: true }],
      ['vendorcam', 'ptz_move', { direction: 'left', speed: 65 }],
      ['vendorcam', 'ptz_move', { direction: 'left', speed: 0 }],
      ['onvif', 'ptz_move', { direction: 'left', speed: 1.1 }],
      ['onvif', 'ptz_preset', {}],
    ] as const)('12.9, 15.2, 16.2 %s takes no %s with %j', async (asset, name, payload) => {
      const { status, body } = await send(scene[asset], name, payload);
      expect([status, body.type]).toEqual([422, '/problems/invalid-payload']);
    });

    it('9.3, 15.2 unknown and disabled commands, assets and tasks are 404', async () => {
      expect((await send(scene.vendorcam, 'reboot')).status).toBe(404);
      expect((await send(scene.drone, 'explode')).status).toBe(404);
      expect((await send(nobody, 'arm')).status).toBe(404);
      for (const path of [
        `/assets/${nobody}`,
        `/assets/${nobody}/telemetry`,
        `/tasks/${nobody}`,
        '/assets/x',
      ]) {
        expect((await scene.ask(scene.path + path)).status).toBe(404);
      }
    });

    it('12.15 tasks are listed, newest first, of the kit and of an asset', async () => {
      const sent = await send(scene.onvif, 'ptz_move', { direction: 'up' });
      await ended(sent);
      const { body } = await scene.ask(`${scene.path}/tasks?limit=1`);
      expect(body.tasks).toMatchObject([{ id: sent.body.id, status: 'completed' }]);
      const { body: ofCamera } = await scene.ask(
        `${scene.path}/assets/${scene.onvif}/tasks?status=completed`,
      );
      expect(ofCamera.tasks.every((task) => task.asset_id === scene.onvif)).toBe(true);
    });

    it('8.13, 8.14 the keys of assets are unique within the kit, and the list has no vendor of partner assets', async () => {
      const body = { name: 'Twin', type: 'vehicle', vendor: 'ACME', model: 'T1' };
      const made = [await create(body), await create(body)];
      expect(made.map((each) => each.body.vendor)).toEqual(['ACME', 'ACME']);
      const { assets } = (await scene.ask(`${scene.path}/assets`)).body;
      expect(new Set(assets.map(({ asset_key }) => asset_key)).size).toBe(assets.length);
      const twins = assets.filter(({ name }) => name === 'Twin');
      expect(twins).toMatchObject([
        { vendor: null, model: 'T1' },
        { vendor: null, model: 'T1' },
      ]);
    });

    it('10.6, 10.7 tasks have one of four states and name who asked', async () => {
      const first = await send(scene.onvif, 'ptz_move', { direction: 'up' });
      const again = await send(scene.onvif, 'ptz_move', { direction: 'up' });
      const key = await scene.newKey();
      const path = `${scene.path}/assets/${scene.onvif}/commands/ptz_move`;
      const other = await scene.ask(path, { key, body: { payload: { direction: 'up' } } });
      const { tasks } = (await scene.ask(`${scene.path}/tasks`)).body;
      for (const { status } of tasks) expect(['pending', 'running', 'completed', 'failed']).toContain(status);
      const askers = [first, again, other].map((each) => each.body.requested_by);
      expect([askers[0] === askers[1], askers[0] === askers[2]]).toEqual([true, false]);
    });

    it('12.18 a command without parameters is sent without a body, and with {}', async () => {
      const path = `${scene.path}/assets/${scene.drone}/commands/return_home`;
      const bare = await scene.ask(path, { method: 'POST' });
      expect([bare.status, bare.body.status]).toEqual([202, 'pending']);
      expect(await ended(bare)).toMatchObject({ status: 'completed', payload: {} });
      const braces = await scene.ask(path, { body: '{}' });
      expect((await ended(braces)).status).toBe('completed');
    });

    it('12.19 the bearing of a fix reaches the sockets, for the arrow on the map', async () => {
      const { body } = await create({ name: 'Arrow', type: 'vehicle' });
      const frames = await watch(body.id);
      await scene.ask(`${scene.path}/assets/${body.id}/location`, {
        body: { lat: 1, lon: 2, bearing: 271.5 },
      });
      await eventually('the fix', () => frames.some(({ type }) => type === 'feed'));
      expect(frames.find(({ type }) => type === 'feed')).toMatchObject({
        message: { data: { bearing: 271.5 } },
      });
    });

    it('16.4 the fixes of 15 drones at 1 Hz are all taken', async () => {
      const ids = await Promise.all(
        Array.from(
          { length: 15 },
          async (_, n) => (await create({ name: `Swarm ${n}`, type: 'drone' })).body.id,
        ),
      );
      const statuses: number[] = [];
      for (let second = 0; second < 3; second += 1) {
        const pushed = ids.map(async (id) => {
          const url = `${scene.url}${scene.path}/assets/${id}/location`;
          const headers = { 'x-api-key': scene.key, 'content-type': 'application/json' };
          const body = JSON.stringify({ lat: 47 + second / 1_000, lon: 8 });
          statuses.push((await fetch(url, { method: 'POST', headers, body })).status);
        });
        await Promise.all(pushed);
      }
      expect(statuses).toEqual(Array.from({ length: 45 }, () => 204));
    });

    it('16.3 a body over 64 KiB is 413', async () => {
      expect((await create({ name: 'x'.repeat(70_000), type: 'vehicle' })).status).toBe(413);
    });

    /** Frames of a socket that watches this asset, from its snapshot on. */
    async function watch(asset_id: string): Promise<readonly ServerFrame[]> {
      const url = `${scene.url.replace('http', 'ws')}${scene.path}/ws`;
      const socket = new WebSocket(url, ['kit.v1'], { headers: { 'x-api-key': scene.key } });
      const frames: ServerFrame[] = [];
      socket.on('message', (raw: Buffer) => frames.push(serverFrame.parse(JSON.parse(raw.toString('utf8')))));
      await once(socket, 'open');
      socket.send(JSON.stringify({ type: 'subscribe', assets: [asset_id] }));
      await eventually('the snapshot', () => frames.length > 0);
      return frames;
    }
  });
}
