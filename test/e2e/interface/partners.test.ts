/** Statements on partner assets, as clients write them, in all forms of the service. The numbers are those of statements.md. */
import { describe, expect, it } from 'vitest';
import { formsHere, sceneFor, type Answer } from '../../support/kit/interface-scene.ts';
import { peerMissing } from '../../support/peers.ts';

const utc = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/u;
const like = (pattern: RegExp): unknown => expect.stringMatching(pattern);

describe.skipIf(peerMissing('mosquitto')).each(formsHere())('partner assets, form %s', (form) => {
  const scene = sceneFor(form);

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
    const lost = await scene.ask(`${scene.path}/assets/${body.id}/location`, {
      body: { lat: null, lon: 8.5 },
    });
    expect(lost.status).toBe(422);
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
});
