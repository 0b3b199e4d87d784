import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { full_acls } from '../../../../drivers/vendorradio/sim/sim-radio.ts';
import { eventually } from '../../../support/eventually.ts';
import { type VendorradioLab, vendorradioLab } from '../../../support/drivers/vendorradio-lab.ts';

let lab: VendorradioLab;
beforeEach(async () => {
  lab = await vendorradioLab();
});
afterEach(async () => lab.stop());

const online = async (one: object = {}): Promise<void> => {
  lab.start(lab.options(one));
  await lab.until('online');
};

describe('what is offered', () => {
  it('is what the login may do', async () => {
    await online({ identify_led: 'green:status' });
    expect(lab.offered()).toEqual([
      'refresh',
      'identify',
      'scan',
      'set_txpower',
      'set_channel',
      'set_mesh_channel',
      'reboot',
    ]);
  });

  it('shrinks with its rights, without a single attempt', async () => {
    lab.radio.sessions.acls = {
      ...full_acls,
      ubus: { iwinfo: ['info', 'devices', 'assoclist'], system: ['board', 'info'] },
    };
    await online({ identify_led: 'green:status' });
    expect(lab.offered()).toEqual(['refresh']);
    expect(lab.radio.asked.filter((call) => call.startsWith('uci'))).toEqual([]);
  });

  it('shrinks with the configuration', async () => {
    await online({ commands: ['refresh', 'reboot'] });
    expect(lab.offered()).toEqual(['refresh', 'reboot']);
  });

  it('has risks and approvals that fit, and enumerates channels of the band that are not restricted', async () => {
    await online();
    const found = lab.hub.hub.findCommand(lab.asset()?.id ?? '', 'set_channel');
    expect(found).toMatchObject({ command: { risk_level: 'high', requires_approval: true } });
    await expect(lab.command('set_channel', { channel: 52 })).rejects.toThrow(z.ZodError);
    await expect(lab.command('set_channel', { channel: 1 })).rejects.toThrow(z.ZodError);
    await expect(lab.command('set_txpower', { dbm: 30 })).rejects.toThrow(z.ZodError);
    expect(lab.radio.count('uci set')).toBe(0);
  });
});

describe('set_channel', () => {
  it('is completed when the radio was seen on the new channel with a peer, and is kept', async () => {
    await online();
    await expect(lab.command('set_channel', { channel: 40, bandwidth_mhz: 40 })).resolves.toEqual({
      channel: 40,
      freq_mhz: 5200,
      bandwidth_mhz: 40,
      peers: 1,
    });
    expect(lab.radio.wifi).toMatchObject({ settings: { isPending: false }, channel: 40 });
    expect(lab.radio.count('uci apply')).toBe(1);
  });

  it('is reverted and reported when it cuts the link', async () => {
    lab.radio.wifi.stations[0]!.channel = 36;
    lab.radio.sessions.acls = {
      ...full_acls,
      ubus: { ...full_acls.ubus, uci: full_acls.ubus.uci.filter((right) => right !== 'rollback') },
    };
    await online();
    await expect(lab.command('set_channel', { channel: 40 })).rejects.toThrow(
      'no peer after change, rolled back to channel 36 at 20 dBm',
    );
    expect(lab.radio.wifi).toMatchObject({ settings: { isPending: false }, channel: 36 });
    expect(lab.radio.count('uci confirm')).toBe(0);
  });

  it('is not reported as done without an effect', async () => {
    lab.radio.wifi.settings.isObedient = false;
    await online();
    await expect(lab.command('set_channel', { channel: 40 })).rejects.toThrow(
      /answered without channel 40, rolled back/u,
    );
  });

  it('is reverted at once when it is stopped', async () => {
    lab.radio.wifi.stations[0]!.channel = 36;
    await online();
    const stopping = new AbortController();
    const done = lab.command('set_channel', { channel: 40 }, stopping.signal);
    done.catch(() => undefined);
    await eventually('it is applied', () => lab.radio.wifi.settings.isPending);
    stopping.abort();
    await expect(done).rejects.toThrow(/stopped before the change was confirmed, rolled back/u);
    expect(lab.radio.wifi.channel).toBe(36);
  });

  it('survives that the session is lost while it waits, as by a restart of rpcd', async () => {
    await online();
    const done = lab.command('set_channel', { channel: 40 });
    await eventually('it is applied', () => lab.radio.wifi.settings.isPending);
    lab.radio.sessions.forgetAll();
    await expect(done).resolves.toMatchObject({ channel: 40 });
    expect(lab.radio.wifi.settings.isPending).toBe(false);
  });

  it.each([
    ['set', [6], /rejected the change: no permission; nothing was changed/u],
    ['apply', [6], /another unconfirmed change/u],
    ['get', [4], /cannot read the settings/u],
  ] as const)(
    'is refused with a sentence when the radio refuses uci %s',
    async (method, answer, sentence) => {
      await online();
      lab.radio.answers.set(`uci ${method}`, answer);
      await expect(lab.command('set_channel', { channel: 40 })).rejects.toThrow(sentence);
      expect(lab.radio.wifi.channel).toBe(36);
    },
  );

  it('whose confirmation comes too late is not reported as done', async () => {
    await online();
    lab.radio.answers.set('uci confirm', [5]);
    await expect(lab.command('set_channel', { channel: 40 })).rejects.toThrow(/confirmation was too late/u);
  });

  it('never shows a key of the configuration', async () => {
    await online();
    await lab.command('set_channel', { channel: 40 });
    const all = JSON.stringify([lab.hub.log.lines, lab.hub.outbox.drafts]);
    expect(all).not.toContain('never-to-be-told');
    expect(all).not.toContain('secret');
  });
});

it('set_txpower is completed with the power that was read back', async () => {
  await online();
  await expect(lab.command('set_txpower', { dbm: 10 })).resolves.toEqual({ txpower_dbm: 10 });
  await expect(lab.command('set_txpower', { dbm: 'auto' })).resolves.toEqual({ txpower_dbm: 17 });
  expect(lab.radio.wifi.settings.saved['txpower']).toBeUndefined();
});

it('set_mesh_channel is completed when the radio is seen on the frequency with a peer', async () => {
  lab.radio.wifi.isMeshRider = true;
  await online();
  await expect(lab.command('set_mesh_channel', { freq_mhz: 5200, bandwidth_mhz: 20 })).resolves.toMatchObject(
    {
      freq_mhz: 5200,
      peers: 1,
    },
  );
});

it('set_mesh_channel that was not seen reports that it is not taken back', async () => {
  lab.radio.wifi.isMeshRider = true;
  await online();
  await expect(lab.command('set_mesh_channel', { freq_mhz: 5999, bandwidth_mhz: 20 })).rejects.toThrow(
    /not rolled back/u,
  );
  expect(lab.radio.count('message-system chswitch')).toBe(1);
});

it('reboot is completed when the radio is back with a smaller uptime, and is given once', async () => {
  await online();
  await expect(lab.command('reboot')).resolves.toMatchObject({ uptime_s: 1 });
  expect(lab.radio.count('system reboot')).toBe(1);
  await lab.until('online');
});

it('identify lets the LED blink and puts back what it did before', async () => {
  await online({ identify_led: 'green:status' });
  await lab.command('identify', { seconds: 1 });
  expect(lab.radio.wifi.written).toEqual(['timer', 'heartbeat']);
});

it('identify puts the LED back when the connector is stopped', async () => {
  await online({ identify_led: 'green:status' });
  const stopping = new AbortController();
  const blinking = lab.command('identify', { seconds: 60 }, stopping.signal);
  blinking.catch(() => undefined);
  await eventually('it blinks', () => lab.radio.wifi.written.length === 1);
  await lab.hub.stop();
  expect(lab.radio.wifi.written).toEqual(['timer', 'heartbeat']);
  // Its minute must not outlast the test.
  stopping.abort();
});

it('scan lists what was found, strongest first', async () => {
  await online();
  await expect(lab.command('scan')).resolves.toEqual({
    networks: [{ ssid: 'other', bssid: '02:00:00:00:00:99', mode: 'Master', channel: 40, rssi: -70 }],
    truncated: false,
  });
});

it('refresh answers with a poll of this moment', async () => {
  lab.start(lab.options({}, { poll_s: 60 }));
  await lab.until('online');
  const polls = lab.feed('link').length;
  await expect(lab.command('refresh')).resolves.toMatchObject({ channel: 36, stations: 1 });
  expect(lab.feed('link').length).toBe(polls + 1);
});

it('every command is refused when it was stopped before it began', async () => {
  await online();
  lab.radio.asked.splice(0);
  for (const [name, payload] of [
    ['set_channel', { channel: 40 }],
    ['reboot', {}],
    ['scan', {}],
  ] as const) {
    await expect(lab.command(name, payload, AbortSignal.abort())).rejects.toThrow(/command not sent/u);
  }
  expect(lab.radio.asked).not.toContain('system reboot');
  expect(lab.radio.asked).not.toContain('uci apply');
});
