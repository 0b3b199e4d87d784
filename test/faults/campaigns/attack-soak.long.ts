/** An hour under every attack at once; `KIT_CONNECTOR_SOAK_MINUTES` makes it shorter or longer. */
import { expect, it } from 'vitest';
import { real_devices, type Sample, soakUnderAttack } from '../support/attack-soak.ts';

const minutes = Number(process.env['KIT_CONNECTOR_SOAK_MINUTES'] ?? 60);
const growth_max_mb = 15;
/** Pressure on the processors at which other programs keep the daemon from its turn. */
const busy_pct = 90;
/** Each sentence about each subject five times a minute, and the strangers on the radio are a few dozen subjects. */
const log_lines_a_minute_max = 400;

it(
  'a kit and a service under attack serve their real devices, keep balanced books and flat memory',
  { timeout: (minutes + 5) * 60_000 },
  async () => {
    const seed = Date.now() % 1e9;
    const { samples, survived, loudest } = await soakUnderAttack(minutes, seed);
    const quarter = Math.floor(samples.length / 4);
    const [second, last] = [samples.slice(quarter, 2 * quarter), samples.slice(-quarter)];
    const [first, end] = [samples.at(0), samples.at(-1)];
    console.log(
      [
        `seed ${seed}, ${minutes} min, ${samples.length} samples`,
        `daemon MB: second quarter ${mean(second, 'daemon_mb')}, last quarter ${mean(last, 'daemon_mb')}`,
        `service MB: second quarter ${mean(second, 'service_mb')}, last quarter ${mean(last, 'service_mb')}`,
        `not answered in time: ${samples.filter(({ state }) => !state).length}`,
        `longest delay of the daemon's loop in ms: ${Math.max(...samples.map((each) => each.loop_max_ms ?? 0))}`,
        `positions ${first?.positions} to ${end?.positions}, log lines ${first?.log_lines} to ${end?.log_lines}`,
        ...loudest.map(([sentence, lines]) => `${lines} x ${sentence}`),
      ].join('\n'),
    );
    expect(survived).toEqual({ daemon: true, service: true });
    // A daemon that gets no processor cannot answer; two samples in a row without an answer are its fault.
    expect(samples.filter(({ state }, at) => !state && !samples[at + 1]?.state)).toEqual([]);
    expect(
      samples.filter(({ state, cpu_pressure_pct = 0 }) => !state && cpu_pressure_pct < busy_pct),
    ).toEqual([]);
    expect(samples.filter(({ state }) => state?.balanced === false)).toEqual([]);
    expect(samples.filter(({ state }) => state && state.real_online < real_devices)).toEqual([]);
    expect(samples.filter(({ service_status }) => service_status !== 200)).toEqual([]);
    const pairs = samples
      .slice(1)
      .map((sample, index) => sample.positions - (samples[index]?.positions ?? 0));
    expect(Math.min(...pairs)).toBeGreaterThan(0);
    expect(mean(last, 'daemon_mb') - mean(second, 'daemon_mb')).toBeLessThan(growth_max_mb);
    expect(mean(last, 'service_mb') - mean(second, 'service_mb')).toBeLessThan(growth_max_mb);
    expect((end?.log_lines ?? 0) / minutes).toBeLessThan(log_lines_a_minute_max);
  },
);

function mean(samples: readonly Sample[], figure: 'daemon_mb' | 'service_mb'): number {
  const sum = samples.reduce((total, sample) => total + sample[figure], 0);
  return Math.round((10 * sum) / Math.max(1, samples.length)) / 10;
}
