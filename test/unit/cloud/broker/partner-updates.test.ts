/** Partner assets on their way to a kit. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { MessageRefused } from '../../../../src/cloud/broker/cloud-link.ts';
import { PartnerUpdates } from '../../../../src/cloud/broker/partner-updates.ts';
import type { PartnerState } from '../../../../src/cloud/stored/stored.ts';
import { texts } from '../../../../src/cloud/texts.ts';
import { type RecordingLog, recordingLog } from '../../../support/recording-log.ts';
import { kit_id } from '../../../support/contract-samples.ts';
import { useFakeTime } from '../../../support/fake-time.ts';

useFakeTime();

const large = '00000000-0000-4000-8000-000000000001';
const small = '00000000-0000-4000-8000-000000000002';

function removed(asset_id: string): PartnerState {
  return { asset_id, gone: true, revision: 2, peer_revision: 1, fix_sent_ms: 0, record: null, fix: null };
}

const store = {
  kit: async () => ({ state: { online: true, partners: true } }),
  partners: async () => [removed(large), removed(small)],
  partnerFixSent: async () => undefined,
};

describe('PartnerUpdates', () => {
  let ends: AbortController;
  let sent: string[];
  let log: RecordingLog;
  beforeEach(() => {
    ends = new AbortController();
    sent = [];
    log = recordingLog();
  });
  afterEach(() => ends.abort());

  const start = (error: Error): PartnerUpdates => {
    const sendPartner = async (_: string, asset_id: string): Promise<void> => {
      if (asset_id === large) throw error;
      sent.push(asset_id);
    };
    // The kit has more fields than are read here.
    return new PartnerUpdates({
      store: store as never,
      link: { sendPartner },
      log,
      signal: ends.signal,
    });
  };

  it('sends the other assets of a kit when the broker refuses one of them, and reports which', async () => {
    start(new MessageRefused(0x95, 'packet too large')).note([kit_id]);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(sent).toEqual([small]);
    expect(log.lines).toMatchObject([
      { sentence: texts.log_partner_refused, facts: { kit_id, asset_id: large } },
    ]);
  });

  it('sends none after a lost connection', async () => {
    start(new Error('not connected')).note([kit_id]);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(sent).toEqual([]);
  });
});
