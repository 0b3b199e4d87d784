/** `npm start` as somebody meets it who has just cloned the repository. */
import { existsSync, readdirSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startChild, type Child } from '../../support/child.ts';
import { startCloud } from '../../support/kit/cloud.ts';
import { command_file } from '../../support/kit/kit.ts';
import { withDirectory } from '../../support/temporary.ts';

/** Bounds a hang. */
const patience_ms = 60_000;
/** The first telemetry may be over before the broker is listened to, and on a busy machine no figure moves: complete telemetry comes each 300 s. */
const telemetry_ms = 330_000;

it('prints what runs where and what is published, stops at Ctrl-C and is the same kit the next time', async () => {
  await withDirectory(async (dir) => {
    const own = join(dir, 'kit-connector-demo');
    const first = await visit(dir);
    expect(first.text).toContain(`Configuration and buffer: ${own}`);
    expect(first.text).toContain(`npx kit-connector status --watch --socket ${own}/control.sock`);
    // Whether its own service has acknowledged anything by then is chance.
    expect(first.text).toMatch(
      /stopped: accepted \d+ = delivered \d+(?: to the broker)? \+ buffered \d+ \+ dropped \d+.*\n$/,
    );
    expect(existsSync(join(own, 'control.sock'))).toBe(false);
    expect(readdirSync(own).filter((name) => name.endsWith('.sock'))).toEqual([]);
    const second = await visit(dir);
    expect(second.kit_id).toBe(first.kit_id);
    expect(second.text).toContain("task 'Quadrotor 1' goto_waypoint");

    const file = join(own, 'config.yaml');
    const text = await readFile(file, 'utf8');
    const fewer = text
      .replace(/^drivers:\n[^]*?(?=^\S)/mu, 'drivers:\n  - driver: gateway\n')
      .replace(/^ {2}drivers: .*\n/mu, '');
    await writeFile(file, fewer);
    const without = await visit(dir);
    expect(without.kit_id).toBe(first.kit_id);
    expect(without.text).not.toMatch(/Quadrotor|Gate camera/u);
    expect(without.text).toContain(
      `${own} (some devices of the demo are not configured; delete the directory to restore them)`,
    );
  });
}, 1_200_000);

/** Starts the demo, listens to its broker as the introduction says, and stops it. */
async function visit(state_home: string): Promise<{ readonly kit_id: string; readonly text: string }> {
  const demo: Child = startChild([command_file, 'demo'], { env: { XDG_STATE_HOME: state_home } });
  try {
    await demo.printed(/Published messages \(Ctrl-C stops\):/, patience_ms);
    const [, kit_id = '', url = ''] =
      /Demo kit (\S+): this machine is the gateway and publishes to (mqtt:\S+) /.exec(demo.output()) ?? [];
    expect(demo.output()).toContain(`mosquitto_sub -h 127.0.0.1 -p ${new URL(url).port} -t 'k1/#' -v`);
    const cloud = await startCloud(url, kit_id, { protocolVersion: 4 });
    await cloud.until('telemetry', ({ channel }) => channel === 'telemetry', telemetry_ms);
    await cloud.leave();
    await demo.printed(/kit {2}telemetry {2}.*gateway=/);
    const { code, stdout, stderr } = await demo.end('SIGINT');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    return { kit_id, text: stdout };
  } finally {
    await demo.end('SIGKILL');
  }
}
