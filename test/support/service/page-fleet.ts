/** Many kits for the page: a quarter offline, some with trouble. */
import { channels } from '../../../src/contract/topics.ts';
import { samples } from '../contract-samples.ts';
import type { PageLab } from './page-lab.ts';

export function kitIds(count: number): readonly string[] {
  return Array.from({ length: count }, (_, i) => `${String(i).padStart(8, '0')}-6d1e-4b7a-9c3d-1f2e3d4c5b6a`);
}

/** Reports these kits, logs in with a key for all of them, and opens their list. Their names are `Kit 0` and so on. */
export async function openKits(lab: PageLab, count: number): Promise<PageLab> {
  const ids = kitIds(count);
  // Together, so that the service stores them in few commits.
  await Promise.all(ids.map(async (kit, i) => reportKit(lab, kit, i)));
  const key = await lab.lab.giveKey({ kits: ids });
  await lab.page.goto('about:blank');
  await lab.context.clearCookies();
  await lab.page.goto(`${lab.url}/#key=${encodeURIComponent(key)}`);
  await lab.page.locator('.page-link, .kit-list').first().waitFor();
  await lab.page.goto(`${lab.url}/#/kits`);
  return lab;
}

async function reportKit({ lab }: PageLab, kit: string, i: number): Promise<void> {
  const name = `Kit ${i}`;
  const outbox = { rows: 0, bytes: 0, oldest: null };
  const state = { ...samples['kitState'], name, online: i % 4 !== 0, degraded: [], outbox };
  await lab.publish(channels.state, state, { kit });
  const battery = i % 10 === 1 ? 15 : 80;
  const telemetry = { ...samples['kitTelemetry'], battery, battery_charging: false };
  await lab.publish(channels.telemetry, telemetry, { kit });
}
