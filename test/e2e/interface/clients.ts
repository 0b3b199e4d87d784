/** Statements as a client meets them who has only the document. The numbers are those of statements.md. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import * as shapes from '../../support/kit/document-shapes.ts';
import type { Answer, Scene } from '../../support/kit/interface-scene.ts';

/** Dozens of requests, which wait where a limit says so. */
const walk_ms = 120_000;
const utc = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/u;
const like = (pattern: RegExp): unknown => expect.stringMatching(pattern);

export function describeClients(scene: Scene): void {
  describe('a client of the document', () => {
    const create = async (body: object): Promise<Answer> => scene.ask(`${scene.path}/assets`, { body });

    it('12.6, 12.9, 12.13 takes null for an optional field as a field that is not given', async () => {
      const none = { vendor: null, model: null, metadata: null, parent_id: null };
      const { status, body } = await create({ name: 'Bare', type: 'vehicle', ...none });
      expect([status, body]).toMatchObject([201, { ...none, metadata: {} }]);
      const fix = { lat: 47.4, lon: 8.5, alt_m: null, bearing: null, speed_mps: null, timestamp: null };
      const pushed = await scene.ask(`${scene.path}/assets/${body.id}/location`, { body: fix });
      expect(pushed.status).toBe(204);
      const { body: feeds } = await scene.ask(`${scene.path}/assets/${body.id}/telemetry`);
      expect(feeds).toMatchObject({ gps: { ...fix, timestamp: like(utc) } });
      const path = `${scene.path}/assets/${scene.drone}/commands/return_home`;
      const sent = await scene.ask(path, { body: { payload: null } });
      expect([sent.status, sent.body]).toMatchObject([202, { payload: {} }]);
      // 10.1: a task has no field that may be null.
      expect(Object.values(sent.body)).not.toContain(null);
      const lost = await scene.ask(`${scene.path}/assets/${body.id}/location`, {
        body: { lat: null, lon: 8.5 },
      });
      expect(lost.status).toBe(422);
    });

    it('12.6 takes an empty text for an optional field as a field that was left empty', async () => {
      const { status, body } = await create({ name: 'Bare', type: 'vehicle', vendor: '', model: '  ' });
      expect([status, body]).toMatchObject([201, { vendor: null, model: null }]);
      expect((await create({ name: '', type: 'vehicle' })).status).toBe(422);
    });

    it('12.6, 12.13 leaves out fields that it does not know, and takes JSON under any type that a client gives it', async () => {
      const { status, body } = await create({ name: 'Bare', type: 'vehicle', colour: 'red' });
      expect(status).toBe(201);
      expect(body).not.toHaveProperty('colour');
      const pushed = await scene.ask(`${scene.path}/assets/${body.id}/location`, {
        body: { lat: 47.4, lon: 8.5, accuracy_m: 3 },
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
      });
      expect(pushed.status).toBe(204);
      const { body: feeds } = await scene.ask(`${scene.path}/assets/${body.id}/telemetry`);
      expect(feeds).toMatchObject({ gps: { lat: 47.4, lon: 8.5 } });
    });

    it('8.10, 12.6 keeps metadata, shows them, and replaces them by PATCH', async () => {
      const metadata = { crew: { name: 'north' }, plates: ['ZH 1'] };
      const { body } = await create({ name: 'Truck', type: 'vehicle', metadata });
      expect(body).toMatchObject({ metadata });
      const path = `${scene.path}/assets/${body.id}`;
      expect((await scene.ask(path)).body).toMatchObject({ metadata });
      const change = { name: 'Truck 2', metadata: { crew: null } };
      const changed = await scene.ask(path, { method: 'PATCH', body: change });
      expect([changed.status, changed.body]).toMatchObject([200, change]);
      expect((await scene.ask(path)).body).toMatchObject(change);
      const listed = (await scene.ask(`${scene.path}/assets`)).body.assets.find(({ id }) => id === body.id);
      expect(listed).toMatchObject({ name: 'Truck 2' });
      expect(listed).not.toHaveProperty('metadata');
    });

    it(
      '1.2, 1.6, 2.1, 2.2, 2.3, 3.1, 8.5, 9.1, 11.1 answers every read that follows from the list of kits in the shape of the document',
      { timeout: walk_ms },
      async () => {
        const read = async <T>(path: string, shape: z.ZodType<T>): Promise<T> => {
          const { status, body } = await scene.ask(path);
          expect([path, status]).toEqual([path, 200]);
          return shape.parse(body);
        };
        const [kit] = await read('/api/kits', shapes.kits);
        const path = `/api/kits/${kit?.id ?? ''}`;
        await read(`${path}/telemetry`, shapes.telemetry);
        const { links } = await read(`${path}/links`, shapes.links);
        for (const { name, type = name } of links)
          for (const word of [name, name.toUpperCase(), type, type.toUpperCase()])
            await read(`${path}/links/${encodeURIComponent(word)}`, shapes.oneLink);
        const { assets } = await read(`${path}/assets`, shapes.assets);
        expect(assets.length).toBeGreaterThanOrEqual(4);
        for (const { id, protocol } of assets) {
          const { commands } = await read(`${path}/assets/${id}/commands`, shapes.commands);
          expect(new Set(commands.map(({ name }) => name)).size).toBe(commands.length);
          const feeds = await read(`${path}/assets/${id}/telemetry`, z.record(z.string(), z.looseObject({})));
          const fields = shapes.feedFields[protocol === 'mavlink' ? 'drone' : protocol] ?? {};
          for (const [feed, message] of Object.entries(feeds))
            expect([feed, Object.keys(message)]).toEqual([
              feed,
              expect.arrayContaining([...(fields[feed] ?? [])]),
            ]);
        }
      },
    );

    it(
      '10.2, 12.9, 12.18 takes a command without parameters however a client leaves them out, and refuses payloads that break the schema',
      { timeout: walk_ms },
      async () => {
        const command = (asset: string, name: string): string =>
          `${scene.path}/assets/${asset}/commands/${name}`;
        for (const body of [undefined, '', {}, { payload: {} }, { payload: null }]) {
          const sent = await scene.ask(command(scene.drone, 'return_home'), { method: 'POST', body });
          expect([body, sent.status]).toEqual([body, 202]);
          expect(shapes.task.parse(sent.body)).toMatchObject({
            asset_id: scene.drone,
            payload: {},
            result: {},
          });
        }
        const wrong: readonly (readonly [asset: string, name: string, payload: unknown])[] = [
          [scene.drone, 'set_mode', {}],
          [scene.drone, 'set_mode', { mode: 'NOPE' }],
          [scene.drone, 'goto_waypoint', { lat: 47.4 }],
          [scene.drone, 'goto_waypoint', { lat: 'x', lon: 1, alt_m: 1 }],
          [scene.vendorcam, 'ptz_move', { direction: 'sideways', speed: 5 }],
          [scene.vendorcam, 'ptz_move', { direction: 'up', speed: 65 }],
          [scene.onvif, 'ptz_move', { direction: 'up', speed: 2 }],
        ];
        const offered = new Map<string, readonly string[]>();
        for (const asset of [scene.drone, scene.vendorcam, scene.onvif]) {
          const { body } = await scene.ask(`${scene.path}/assets/${asset}/commands`);
          offered.set(
            asset,
            body.commands.map(({ name }) => name),
          );
        }
        const tried = wrong.filter(([asset, name]) => offered.get(asset)?.includes(name));
        expect(tried.length).toBeGreaterThan(0);
        for (const [asset, name, payload] of tried) {
          const { status, body } = await scene.ask(command(asset, name), { body: { payload } });
          expect([name, payload, status, typeof body]).toEqual([name, payload, 422, 'object']);
        }
      },
    );

    it(
      '8.10, 12.6, 12.13, 15.1 keeps what a client registers, and refuses what the document does not allow with a JSON body',
      { timeout: walk_ms },
      async () => {
        const metadata = { a: 1, b: [true, null, 'x'], c: { d: { e: 'ü漢字😀' } } };
        const parent = shapes.created.parse((await create({ name: 'Mule', type: 'vehicle' })).body);
        const wanted = {
          name: 'Ünï 漢字 😀',
          type: 'my-custom thing',
          vendor: 'ACME',
          model: 'M 1',
          metadata,
        };
        const made = await create({ ...wanted, parent_id: parent.id });
        expect(shapes.created.parse(made.body)).toMatchObject({ ...wanted, parent_id: parent.id });
        const faults = [
          { type: 'x' },
          { name: 'x' },
          [],
          'x',
          { name: 5, type: 'x' },
          { name: 'x', type: 'x', parent_id: 'nope' },
          { name: 'x', type: 'x', metadata: 'no' },
        ];
        const fixes = [
          {},
          { lat: 91, lon: 0 },
          { lat: 0, lon: 181 },
          { lat: '1', lon: 2 },
          { lat: 1, lon: 2, bearing: 361 },
          [],
        ];
        const push = `${scene.path}/assets/${parent.id}/location`;
        for (const [path, bodies] of [
          [`${scene.path}/assets`, faults],
          [push, fixes],
        ] as const)
          for (const body of bodies) {
            const { status, body: answer } = await scene.ask(path, { body: JSON.stringify(body) });
            expect([path, body, status >= 400 && status < 500, typeof answer]).toEqual([
              path,
              body,
              true,
              'object',
            ]);
          }
        for (const fix of [
          { lat: -90, lon: 180 },
          { lat: 0, lon: 0, alt_m: -12.5 },
          { lat: 46.5, lon: 8, bearing: 360, speed_mps: 0 },
        ]) {
          expect((await scene.ask(push, { body: fix })).status).toBe(204);
          const { body } = await scene.ask(`${scene.path}/assets/${parent.id}/telemetry`);
          expect(body).toMatchObject({ gps: { ...fix, timestamp: like(utc) } });
          const { assets } = shapes.assets.parse((await scene.ask(`${scene.path}/assets`)).body);
          expect(assets.find(({ id }) => id === parent.id)).toMatchObject({ lat: fix.lat, lon: fix.lon });
        }
      },
    );

    it(
      '12.1, 12.2, 12.7, 12.13 takes the spellings of clients in the wild',
      { timeout: walk_ms },
      async () => {
        const upper = `/api/kits/${scene.kit_id.toUpperCase()}`;
        for (const path of [`${upper}/telemetry`, `${scene.path}/assets/`, `${scene.path}/assets?x=1`])
          expect([path, (await scene.ask(path)).status]).toEqual([path, 200]);
        expect((await scene.ask('/api/kits', { method: 'HEAD' })).status).toBe(200);
        const { body } = await create({ name: 'Mule', type: 'vehicle' });
        for (const text of ['\uFEFF{"lat":46.2,"lon":8.2}', ' \n{"lat":46.2,"lon":8.2}\n']) {
          const pushed = await scene.ask(`${scene.path}/assets/${body.id}/location`, { body: text });
          expect([text, pushed.status]).toEqual([text, 204]);
        }
      },
    );
  });
}
