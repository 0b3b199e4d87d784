/** The limit of what a link sends to vehicles is held, and commands have precedence. */
import { describe, expect, it } from 'vitest';
import { SendBudget } from '../../../../../drivers/mavlink/links/send-budget.ts';
import { withMission, planFile, waypoint } from '../missions/mission-lab.ts';

describe('A send budget', () => {
  it('holds its rate, keeps a reserve for commands and reports what was sent', () => {
    const budget = new SendBudget(200);
    let sent = 0;
    for (let now_ms = 0; now_ms < 20_000; now_ms += 10) {
      if (!budget.has(40, 'usual', now_ms)) continue;
      budget.spend(40, now_ms);
      sent += 40;
    }
    expect(sent).toBeLessThanOrEqual(200 * 20 + 400);
    expect(sent).toBeGreaterThan(200 * 19);
    expect(budget.rate(20_000)).toBe(200);
    // The others have used what is theirs.
    expect([budget.has(60, 'usual', 20_000), budget.has(60, 'command', 20_000)]).toEqual([false, true]);
  });
});

describe('A link with bytes_per_s_max', () => {
  it('is not exceeded by an upload and a reading of parameters, and a command comes through', async () => {
    const limit = 200;
    await withMission({ airborne: true }, { link: { bytes_per_s_max: limit } }, async (lab, drone) => {
      const [bytes, begin_ms] = [drone.received_bytes, performance.now()];
      const plan = planFile(Array.from({ length: 20 }, (_, at) => waypoint(at, 0)));
      const uploading = lab.command(
        'upload_mission',
        { plan, allow_airborne: true },
        { remaining_ms: 80_000 },
      );
      const reading = lab.command('get_params', {}, { remaining_ms: 80_000 });
      expect(await lab.command('set_mode', { mode: 'LOITER' })).toMatchObject({ acknowledged: true });
      expect(await uploading).toMatchObject({ items: 20 });
      expect(await reading).toMatchObject({ count: 11 });
      const seconds = (performance.now() - begin_ms) / 1_000;
      const sent = drone.received_bytes - bytes;
      expect(sent).toBeLessThanOrEqual(limit * (seconds + 2));
      expect(sent).toBeGreaterThan(1_000);
    });
  }, 90_000);
});
