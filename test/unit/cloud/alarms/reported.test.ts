/** What others reported of alarms elsewhere, played against the store of this service, on both databases. */
import { expect, it } from 'vitest';
import { z } from 'zod';
import type { JsonObject } from '../../../../src/contract/json.ts';
import { channels } from '../../../../src/contract/topics.ts';
import { alarmStates } from '../../../../src/cloud/api/alarm-resources.ts';
import { alarmResource } from '../../../../src/cloud/api/views.ts';
import type { AlarmSeverity } from '../../../../src/cloud/severity.ts';
import type { Database } from '../../../../src/cloud/sql/database.ts';
import { whileListening } from '../../../../src/cloud/start.ts';
import { sqlStore } from '../../../../src/cloud/store/sql-store.ts';
import { asset_id, kit_id, samples } from '../../../support/contract-samples.ts';
import { onEachDatabase } from '../each-database.ts';
import { addHook, calm, received, start_ms } from '../story.ts';

const minute_ms = 60_000;
const day_ms = 86_400_000;

const online: JsonObject = { ...calm, online: true, reason: null };

const told = z.object({
  type: z.string(),
  data: z.looseObject({
    change: z.string().optional(),
    feed: z.string().optional(),
    message: z.looseObject({ detected: z.boolean().optional(), state: z.string().optional() }).optional(),
  }),
});

/** A kit, an operator, and a receiver of webhooks; times are minutes since the start. */
async function startKit(database: Database, severity_min: AlarmSeverity = 'info') {
  const store = sqlStore(database);
  const types = ['alarm', 'asset', 'link', 'battery', 'queue', 'kit.degraded'] as const;
  await addHook(store, { types, severity_min });
  let seq = 0;
  const send = async (
    minute: number,
    channel: string,
    data: JsonObject,
    { said = minute, historical = false, epoch = 17 } = {},
  ): Promise<void> => {
    seq += 1;
    const time_ms = start_ms + said * minute_ms;
    const reception = received({ channel, seq, data, epoch, time_ms });
    await store.commit([{ ...reception, historical }], start_ms + minute * minute_ms);
  };
  const alarms = async (minute: number) => {
    const now_ms = start_ms + minute * minute_ms;
    const found = await store.alarms({ kits: [kit_id], states: alarmStates, limit: 100, now_ms });
    return found.map((alarm) => alarmResource(alarm, now_ms)).toReversed();
  };
  await send(0, channels.state, online);
  await send(0, channels.asset(asset_id), samples['announcement'] ?? {});
  return {
    store,
    send,
    alarms,
    link: async (minute: number, status: string) =>
      send(minute, channels.telemetry, { wans: [{ name: 'eth3', status }] }),
    battery: async (minute: number, battery: number) =>
      send(minute, channels.telemetry, { battery, battery_charging: false }),
    motion: async (minute: number, detected: boolean, options?: Parameters<typeof send>[3]) =>
      send(minute, channels.event(asset_id, 'motion'), { detected }, options),
    look: async (minute: number) => store.lookAtAlarms(start_ms + minute * minute_ms),
    async edit(
      minute: number,
      about: { readonly muted_until?: number | null; readonly acknowledged?: true },
    ) {
      const [alarm] = await alarms(minute);
      const { muted_until } = about;
      const acknowledged = { by: 'ops', at_ms: start_ms + minute * minute_ms };
      const muted_until_ms =
        typeof muted_until === 'number' ? start_ms + muted_until * minute_ms : muted_until;
      const edit = { muted_until_ms, ...(about.acknowledged && { acknowledged }) };
      await store.changeAlarm(kit_id, alarm?.id ?? '', { edit, revision: undefined });
    },
    /** What the receiver was told, in order. */
    async told() {
      const rows = await database.all('SELECT body FROM webhook_messages ORDER BY queued_ms, time_ms');
      return rows.map(({ body }) => {
        const { type, data } = told.parse(JSON.parse(String(body)));
        const { detected, state } = data.message ?? {};
        return `${type} ${data.change ?? `${data.feed} ${state ?? detected}`}`;
      });
    },
  };
}

onEachDatabase('Alarms that others reported', (open) => {
  it('are told when they began while muted and still last as the mute ends (Icinga/icinga2#3779, prometheus/alertmanager#2896)', async () => {
    const kit = await startKit(await open());
    await kit.link(1, 'offline');
    await kit.link(2, 'online');
    await kit.edit(3, { muted_until: 60 });
    await kit.link(30, 'offline');
    await kit.look(59);
    expect(await kit.told()).toEqual(['link opened', 'link closed']);
    await kit.look(60);
    await kit.look(61);
    expect(await kit.told()).toEqual(['link opened', 'link closed', 'link opened']);
    expect(await kit.alarms(61)).toMatchObject([{ state: 'open', count: 2 }]);
  });

  it('are told likewise once somebody ends the mute (prometheus/alertmanager#2896), also events of assets', async () => {
    const kit = await startKit(await open());
    await kit.motion(1, true);
    await kit.motion(2, false);
    await kit.edit(3, { muted_until: 60 });
    await kit.motion(20, true);
    await kit.look(21);
    await kit.edit(30, { muted_until: null });
    await kit.look(30);
    await kit.motion(31, false);
    expect(await kit.told()).toEqual([
      'alarm motion true',
      'alarm motion false',
      'alarm motion true',
      'alarm motion false',
    ]);
  });

  it('are not told again when the mute ends and they were known before (louislam/uptime-kuma#2846)', async () => {
    const kit = await startKit(await open());
    await kit.link(1, 'offline');
    await kit.edit(3, { muted_until: 60 });
    await kit.look(61);
    expect(await kit.told()).toEqual(['link opened']);
  });

  it('are open again for those who follow them when the mute ends (prometheus/alertmanager#578)', async () => {
    const kit = await startKit(await open());
    await kit.link(1, 'offline');
    await kit.edit(3, { muted_until: 60 });
    expect(await kit.look(4)).toEqual([]);
    expect(await kit.look(60)).toMatchObject([
      { kind: 'alarm', alarm: { what: 'link', muted_until_ms: null } },
    ]);
    expect(await kit.look(61)).toEqual([]);
  });

  it('end for those who were told that they were graver than at their end, and for nobody else (netdata/netdata#18179, netdata/netdata#2965, getsentry/sentry#31883, ashwanthkumar/marathon-alerts#29)', async () => {
    const kit = await startKit(await open(), 'critical');
    await kit.battery(1, 18);
    await kit.battery(2, 50);
    expect(await kit.told()).toEqual([]);
    await kit.battery(20, 18);
    await kit.battery(21, 8);
    await kit.battery(22, 15);
    await kit.battery(23, 50);
    expect(await kit.told()).toEqual(['battery raised', 'battery closed']);
    await kit.battery(24, 15);
    await kit.battery(25, 50);
    expect(await kit.told()).toEqual(['battery raised', 'battery closed']);
  });

  it('are told once of a charge that wavers around a limit (omacom/omarchy#10081, kc-GitHub/Wettersensor#11)', async () => {
    const kit = await startKit(await open());
    for (const [at, charge] of [20, 21, 20, 22, 19, 25].entries()) await kit.battery(1 + at, charge);
    expect(await kit.told()).toEqual(['battery opened']);
    for (const [at, charge] of [10, 11, 9, 14, 10].entries()) await kit.battery(10 + at, charge);
    expect(await kit.told()).toEqual(['battery opened', 'battery raised']);
    expect(await kit.alarms(20)).toMatchObject([{ severity: 'critical', value: 10, count: 1 }]);
    await kit.battery(21, 16);
    expect(await kit.alarms(21)).toMatchObject([{ severity: 'warning', state: 'open', value: 16 }]);
    await kit.battery(22, 26);
    expect(await kit.alarms(22)).toMatchObject([{ state: 'closed', count: 1 }]);
  });

  it('of events end likewise: the end of an exceeded data cap is not as grave as the cap', async () => {
    const kit = await startKit(await open(), 'critical');
    const cap = async (minute: number, state: string) =>
      kit.send(minute, channels.event(asset_id, 'data_cap'), { name: 'eth3', state });
    await cap(1, 'warning');
    await cap(2, 'exceeded');
    await cap(3, 'ok');
    await cap(4, 'warning');
    await cap(5, 'ok');
    expect(await kit.told()).toEqual(['alarm data_cap exceeded', 'alarm data_cap ok']);
  });

  it('are raised for a kit whose clock is set and slow, once its live messages have come equally late for a minute (jpmens/from-traccar#4, traccar/traccar#2809)', async () => {
    const kit = await startKit(await open());
    const behind = (minute: number) => ({ said: minute - 20 });
    const gps = { lat: 47.1, lon: 8.5, alt_m: null, ground_speed: null, heading: null };
    for (let minute = 1; minute <= 3; minute += 0.25)
      await kit.send(minute, channels.feed(asset_id, 'gps'), gps, behind(minute));
    await kit.motion(4, true, behind(4));
    await kit.send(5, channels.telemetry, { wans: [{ name: 'eth3', status: 'offline' }] }, behind(5));
    await kit.look(7);
    await kit.send(8, channels.event(asset_id, 'asset_status'), { status: 'offline' }, behind(8));
    expect((await kit.alarms(8)).map(({ what, state }) => `${what} ${state}`).toSorted()).toEqual([
      'asset open',
      'link open',
      'motion open',
    ]);
    expect(await kit.told()).toEqual(['alarm motion true', 'link opened', 'asset opened']);
    // Its backlog is one of a minute ago, not of twenty.
    const outbox = { rows: 1, bytes: 1_000, oldest: new Date(start_ms - 11 * minute_ms).toISOString() };
    await kit.send(9, channels.state, { ...online, outbox });
    expect((await kit.alarms(9)).some(({ what }) => what === 'queue')).toBe(false);
    // Somebody sets the clock.
    await kit.motion(10, false);
    await kit.link(10, 'online');
    expect((await kit.alarms(10)).filter(({ what }) => ['motion', 'link'].includes(what))).toMatchObject([
      { state: 'closed' },
      { state: 'closed' },
    ]);
    await kit.motion(31, true, { said: 11 });
    expect((await kit.alarms(31)).find(({ what }) => what === 'motion')).toMatchObject({ state: 'closed' });
  });

  it('of what a kit reports no longer since its restart end, as with a sensor that was taken away (StephenBlackWasAlreadyTaken/xDrip-Experimental#289)', async () => {
    const kit = await startKit(await open());
    const reports = async (minute: number) =>
      kit.send(minute, channels.telemetry, { wans: [{ name: 'eth3', status: 'online' }] }, { epoch: 18 });
    await kit.battery(1, 8);
    await kit.send(10, channels.state, online, { epoch: 18 });
    await reports(11);
    await reports(50);
    expect(await kit.alarms(50)).toMatchObject([{ what: 'battery', state: 'open' }]);
    await reports(70);
    expect(await kit.alarms(70)).toMatchObject([{ what: 'battery', state: 'closed' }]);
  });

  it('are not raised by what a broker held back for an hour, however long it takes to come', async () => {
    const kit = await startKit(await open());
    for (let minute = 1; minute <= 60; minute += 1)
      await kit.motion(61 + minute / 10, minute % 2 === 1, { said: minute });
    expect(await kit.alarms(68)).toEqual([]);
  });

  it('that close while muted are told, since nothing else would end them elsewhere, but not each time (prometheus/alertmanager#226, louislam/uptime-kuma#4004)', async () => {
    const kit = await startKit(await open());
    await kit.link(1, 'offline');
    await kit.edit(3, { muted_until: 60 });
    for (const minute of [10, 12, 14]) {
      await kit.link(minute, 'online');
      await kit.link(minute + 1, 'offline');
    }
    await kit.link(20, 'online');
    await kit.look(61);
    expect(await kit.told()).toEqual(['link opened', 'link closed']);
  });

  it('of a removed asset close with it (three-plus-three/hw_issues#1248, dgiot/dgiot#335)', async () => {
    const kit = await startKit(await open());
    await kit.motion(1, true);
    await kit.send(5, channels.roster, { assets: [] });
    expect(await kit.alarms(6)).toMatchObject([{ what: 'motion', state: 'closed' }]);
  });

  it('are open again when they become graver after somebody acknowledged them, and told (NagiosEnterprises/nagioscore#382)', async () => {
    const kit = await startKit(await open());
    await kit.battery(1, 18);
    await kit.edit(2, { acknowledged: true });
    await kit.battery(3, 17);
    expect(await kit.alarms(3)).toMatchObject([{ state: 'acknowledged' }]);
    await kit.battery(4, 8);
    expect(await kit.alarms(4)).toMatchObject([{ state: 'open', severity: 'critical' }]);
    expect(await kit.told()).toEqual(['battery opened', 'battery raised']);
  });

  it('are one that stays acknowledged while it flaps (roxy-wi/IncidentRelay#84, elastic/kibana#190609)', async () => {
    const kit = await startKit(await open());
    await kit.link(1, 'offline');
    await kit.edit(2, { acknowledged: true });
    for (const minute of [3, 7, 11]) {
      await kit.link(minute, 'online');
      await kit.link(minute + 2, 'offline');
    }
    expect(await kit.alarms(14)).toMatchObject([{ state: 'acknowledged', count: 4 }]);
  });

  it('close with an end that the kit could only send later (nerves-hub/nerves_hub_link#399)', async () => {
    const kit = await startKit(await open());
    await kit.motion(1, true);
    await kit.send(2, channels.state, { ...samples['kitState'], online: false, reason: 'stopped' });
    await kit.send(90, channels.state, { ...samples['kitState'], degraded: [], online: true, reason: null });
    await kit.motion(91, false, { said: 10, historical: true });
    expect((await kit.alarms(92)).find(({ what }) => what === 'motion')).toMatchObject({
      state: 'closed',
      closed_at: new Date(start_ms + 10 * minute_ms).toISOString(),
    });
  });

  it('have times of the service where the clock of a kit is ahead by a day (Yeraze/meshmonitor#3363)', async () => {
    const kit = await startKit(await open());
    await kit.motion(1, true, { said: 1 + day_ms / minute_ms });
    await kit.motion(4, false, { said: 4 + day_ms / minute_ms });
    await kit.motion(30, true);
    expect(await kit.alarms(31)).toMatchObject([
      { state: 'closed', since: new Date(start_ms + minute_ms).toISOString() },
      { state: 'open', since: new Date(start_ms + 30 * minute_ms).toISOString() },
    ]);
  });

  it('of silence wait until a service that was down, or without its broker, has heard what came meanwhile (thingsboard/thingsboard#13715)', async () => {
    const kit = await startKit(await open());
    let fault: string | undefined;
    // Two hours later the service starts again.
    let minute = 120;
    const listening = whileListening(
      () => fault,
      () => start_ms + minute * minute_ms,
    );
    const look = listening(async () => void (await kit.look(minute)));
    await look();
    minute += 0.1;
    await kit.link(minute, 'online');
    minute += 1;
    await look();
    expect(await kit.alarms(minute)).toEqual([]);
    // The broker is away for as long.
    fault = 'connection refused';
    minute += 120;
    await look();
    fault = undefined;
    await look();
    expect(await kit.alarms(minute)).toEqual([]);
    // Whom nothing was heard of after that is silent.
    minute += 1;
    await look();
    expect(await kit.alarms(minute)).toMatchObject([{ what: 'offline', state: 'open' }]);
  });

  it('stay muted over a restart of the service (prometheus/alertmanager#3457)', async () => {
    const database = await open();
    const kit = await startKit(database);
    await kit.link(1, 'offline');
    await kit.edit(2, { muted_until: 120 });
    const again = sqlStore(database);
    await again.lookAtAlarms(start_ms + 60 * minute_ms);
    expect(await kit.alarms(61)).toMatchObject([{ state: 'muted' }]);
  });
});
