/** The daemon on the emulated machine as a technician there sees it: its unit, its status, its buffer. */
import { expect } from 'vitest';
import {
  bufferReport,
  type BufferReport,
  statusReport,
  type StatusReport,
} from '../../../src/kit/local/api.ts';
import { eventually } from '../eventually.ts';
import type { Machine } from './machine.ts';

export const unit = 'kit-connector.service';
/** Starting the daemon alone takes ten seconds on an emulated processor. */
export const patience_ms = 1_200_000;
/** So many messages of the drone come in a few seconds. */
const enough_messages = 10;

export interface MachineDaemon {
  readonly property: (name: string) => Promise<string>;
  readonly mainPid: () => Promise<string>;
  /** Every report is held against the invariant of the books. */
  readonly report: () => Promise<StatusReport>;
  /** Resolves with the first report that fits. The daemon may be on its way up. */
  readonly reports: (what: string, fits: (report: StatusReport) => boolean) => Promise<void>;
  /** Resolves when the drone is online and more and more is heard of it. */
  readonly hearsDrone: () => Promise<void>;
  /** The messages of drones in the buffer, as soon as all are on the disk. */
  readonly feedsOnDisk: () => Promise<BufferReport['lanes'][number]>;
}

export function daemonOn({ sh, attempt }: Machine): MachineDaemon {
  const property = async (name: string): Promise<string> =>
    sh(`systemctl show ${unit} --property=${name} --value`);
  const reports = async (what: string, fits: (report: StatusReport) => boolean): Promise<void> =>
    eventually(
      what,
      async () => {
        const { code, output } = await attempt('kit-connector status --json');
        if (code !== 0) return false;
        const parsed = statusReport.parse(JSON.parse(output));
        expectBalanced(parsed);
        return fits(parsed);
      },
      patience_ms,
    );
  /** A daemon that starts or works at the pace of an emulated processor does not always answer at once. */
  const report = async (): Promise<StatusReport> => {
    const found = Promise.withResolvers<StatusReport>();
    await reports('it answers', (parsed) => {
      found.resolve(parsed);
      return true;
    });
    return found.promise;
  };
  return {
    property,
    mainPid: async () => property('MainPID'),
    report,
    reports,
    async hearsDrone() {
      await reports('the drone is online', isDrone('online'));
      const heard = messagesOfDrones(await report());
      await reports(
        'messages of the drone go on',
        (now) => isDrone('online')(now) && messagesOfDrones(now) >= heard + enough_messages,
      );
    },
    async feedsOnDisk() {
      await reports('all is on the disk', ({ outbox }) => outbox.by_lane['feed']?.memory_rows === 0);
      const { lanes } = bufferReport.parse(JSON.parse(await sh('kit-connector buffer --json')));
      const feeds = lanes.find(({ lane }) => lane === 'feed');
      if (feeds === undefined) throw new Error('the buffer has no lane for feeds');
      return feeds;
    },
  };
}

/** Whether there is a drone in that state. */
export function isDrone(wanted: 'online' | 'offline'): (report: StatusReport) => boolean {
  return ({ assets }) => assets.some(({ type, status }) => type === 'drone' && status === wanted);
}

function messagesOfDrones({ assets }: StatusReport): number {
  return assets
    .filter(({ type }) => type === 'drone')
    .flatMap(({ feeds }) => Object.values(feeds))
    .reduce((sum, { messages }) => sum + messages, 0);
}

function expectBalanced({
  outbox: { accepted, delivered, buffered, quarantined, dropped },
}: StatusReport): void {
  const gone = Object.values(dropped).reduce((sum, rows) => sum + rows, 0);
  expect({ accepted }).toEqual({ accepted: delivered + buffered + quarantined + gone });
}
