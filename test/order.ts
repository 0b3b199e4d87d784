/**
 * The order in which files run. A long file that begins last keeps one worker busy while the others have nothing left to do, and a
 * clean checkout knows nothing of earlier runs: so the long ones are named here, and begin first.
 */
import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Files that take more than 20 seconds, in the order in which they begin. Those that only wait stand between those that keep
 * the processors busy (browsers, databases), so that both kinds run side by side.
 */
export const long_files = [
  'test/faults/campaigns/history-outage.test.ts',
  'test/e2e/console/screens.test.ts',
  'test/faults/broker/broker-hangs-up.test.ts',
  'test/e2e/console/fleet.test.ts',
  'test/e2e/daemon/two-on-one-id.test.ts',
  'test/e2e/brokers/other-brokers.test.ts',
  'test/unit/page/page.test.ts',
  'test/e2e/service/amqp-ingest.test.ts',
  'test/unit/service/webhooks/delivery.test.ts',
  'test/e2e/console/history.test.ts',
  'test/faults/campaigns/power-cut.test.ts',
  'test/unit/page/video.test.ts',
  'test/e2e/interface/assets.test.ts',
  'test/e2e/service/webhook-replicas.test.ts',
  'test/e2e/command-line/technician.test.ts',
  'test/e2e/console/firefox.test.ts',
  'test/e2e/interface/kits.test.ts',
  'test/e2e/service/database-failover.test.ts',
  'test/e2e/interface/dashboard.test.ts',
  'test/e2e/brokers/shared-subscriptions.test.ts',
  'test/e2e/console/controls.test.ts',
  'test/faults/campaigns/kill-service.test.ts',
  'test/e2e/console/map.test.ts',
  'test/e2e/daemon/start-and-stop.test.ts',
  'test/unit/service/history/erasure.test.ts',
  'test/e2e/command-line/command-line.test.ts',
  'test/e2e/cloud/down.test.ts',
  'test/unit/app/own-service.test.ts',
  'test/e2e/daemon/reload.test.ts',
  'test/unit/drivers/mavlink/commands/outcomes.test.ts',
  'test/unit/drivers/mavlink/missions/upload.test.ts',
  'test/unit/drivers/mavlink/commands/daemon-killed.test.ts',
  'test/unit/drivers/vendorradio/snmp.test.ts',
  'test/unit/drivers/mavlink/mavlink.test.ts',
  'test/unit/drivers/starlink/starlink.test.ts',
  'test/unit/drivers/speedtest/speedtest.test.ts',
  'test/unit/drivers/vendorradio/commands.test.ts',
  'test/unit/drivers/mavlink/status-facts.test.ts',
  'test/unit/drivers/mavlink/missions/download.test.ts',
  'test/unit/drivers/mavlink/commands/plane-takeoff.test.ts',
  'test/unit/drivers/mavlink/commands/flight-commands.test.ts',
  'test/unit/drivers/mavlink/commands/commands-unanswered.test.ts',
  'test/unit/drivers/onvif/soak.test.ts',
  'test/unit/drivers/links/probe/prober-lab.test.ts',
  'test/unit/drivers/links/checks/checks-lab.test.ts',
  'test/unit/outbox/live/disk-away.test.ts',
  'test/unit/outbox/live/dispatch.test.ts',
] as const;

const rank_of: ReadonlyMap<string, number> = new Map(long_files.map((file, i) => [file, i]));

/** Where a file stands in the list; one that is not in it comes after all that are. */
export function rank(file: string): number {
  return rank_of.get(file) ?? long_files.length;
}

/**
 * The long files first, the others as vitest orders them, those of one project together: a process is shared by files that follow
 * each other. Groups of projects stay one after the other: vitest groups what is sorted here.
 */
export class LongFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const { root } = this.ctx.config;
    const place = ({ moduleId }: TestSpecification): number => rank(relative(root, moduleId));
    return sorted.toSorted((a, b) => place(a) - place(b) || a.project.name.localeCompare(b.project.name));
  }
}
