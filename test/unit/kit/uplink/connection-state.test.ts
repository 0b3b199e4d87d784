import { describe, expect, it } from 'vitest';
import { ConnectFailed } from '../../../../src/mqtt/connect-failed.ts';
import { texts as mqtt_texts } from '../../../../src/mqtt/texts.ts';
import { ConnectionState } from '../../../../src/kit/uplink/connection-state.ts';
import { recordingLog } from '../../../support/recording-log.ts';
import { texts } from '../../../../src/kit/uplink/texts.ts';

const boot_ms = Date.UTC(1970, 0, 1);
const set_ms = Date.UTC(2026, 10, 22);
const session = { protocol: '5', session_present: true } as const;
const refused = new ConnectFailed('not authorized (0x87)', 'refused', 0x87);
const unreachable = new ConnectFailed('there is no route to the broker', 'unreachable');

function start() {
  const clock = { mono_ms: 1_000, offset_ms: boot_ms };
  const log = recordingLog();
  const state = new ConnectionState({
    way: () => 'mqtts://b:8883',
    clock: {
      stamp: () => ({ time_ms: clock.offset_ms + clock.mono_ms, mono_ms: clock.mono_ms, synced: true }),
    },
    now: () => clock.mono_ms,
    log,
  });
  return { clock, log, state };
}

describe('ConnectionState', () => {
  it('shows since when it is connected by the clock as it is set now', () => {
    const { clock, state } = start();
    state.attempt();
    clock.mono_ms = 2_000;
    state.connected(session);
    clock.mono_ms = 7_000;
    expect(state.status().since_ms).toBe(boot_ms + 2_000);
    clock.offset_ms = set_ms;
    expect(state.status().since_ms).toBe(set_ms + 2_000);
  });

  it('counts down to the next attempt whatever happens to the time of day', () => {
    const { clock, state } = start();
    state.waiting(4_000);
    clock.mono_ms += 1_500;
    clock.offset_ms = set_ms;
    expect(state.status()).toMatchObject({ state: 'waiting', next_try_in_ms: 2_500 });
    clock.mono_ms += 10_000;
    expect(state.status().next_try_in_ms).toBe(0);
    state.attempt();
    expect(state.status()).toMatchObject({ state: 'connecting', next_try_in_ms: null, attempts: 1 });
  });

  it('keeps the time of the loss through all attempts that follow', () => {
    const { clock, state } = start();
    state.connected(session);
    clock.mono_ms = 5_000;
    state.connecting();
    const { since_ms } = state.status();
    clock.mono_ms = 9_000;
    state.failed(unreachable);
    state.waiting(1_000);
    state.attempt();
    expect(state.status().since_ms).toBe(since_ms);
    expect(state.online).toBe(false);
  });

  it('logs an outage once as a warning, and its length when it is over', () => {
    const { clock, log, state } = start();
    state.failed(refused);
    state.failed(unreachable);
    clock.mono_ms += 12_340;
    state.connected(session);
    expect(log.at('warn')).toEqual([texts.broker_refused]);
    expect(log.at('debug')).toEqual([texts.still_offline]);
    expect(log.lines.at(-1)).toMatchObject({ level: 'info', facts: { down_s: 12.3, protocol: '5' } });
    expect(log.lines[0]?.facts).toMatchObject({
      remedy: "correct the broker's access rules for this client",
    });
    state.lost('the connection was reset', 61_000);
    expect(log.at('warn').at(-1)).toBe(texts.broker_lost);
  });

  it('shows the reason of the last failure', () => {
    const { state } = start();
    expect(state.status().last_error).toBeNull();
    state.failed(unreachable);
    expect(state.status().last_error).toBe('there is no route to the broker');
    state.lost(mqtt_texts.closed_by_broker, 10);
    expect(state.status().last_error).toBe(mqtt_texts.closed_by_broker);
  });

  it('shows why the first attempt failed while the other version of MQTT is tried', () => {
    const { state } = start();
    state.attempt();
    state.otherVersion(unreachable);
    state.attempt();
    expect(state.status()).toMatchObject({ state: 'connecting', last_error: unreachable.message });
  });
});
