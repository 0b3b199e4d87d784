/** Opens a link for a test and records its frames, states and failures. */
import { linkOptions } from '../../../../../drivers/mavlink/options.ts';
import { type LinkNeeds, openLink } from '../../../../../drivers/mavlink/links/link.ts';
import { eventually } from '../../../../support/eventually.ts';

interface Received {
  readonly seq: number;
  readonly sysid: number;
  readonly peer: string;
  readonly signature_ok: boolean | null;
}

/** Opens a link; `throwOn` makes its listener throw on the frame with that sequence number. */
export function listen(options: object, needs: LinkNeeds, throwOn?: number) {
  const frames: Received[] = [];
  const states: (readonly [up: boolean, reason: string | undefined])[] = [];
  const failures: unknown[] = [];
  const link = openLink(
    linkOptions.parse(options),
    {
      frame({ seq, sysid, signature_ok }, peer) {
        if (seq === throwOn) throw new Error('the listener has a fault');
        frames.push({ seq, sysid, peer, signature_ok });
      },
      state: (up, reason) => void states.push([up, reason]),
      failed: (thrown) => void failures.push(thrown),
    },
    needs,
  );
  return {
    link,
    frames,
    states,
    failures,
    seqs: () => frames.map(({ seq }) => seq),
    untilUp: async (opened = 1) =>
      eventually('the link is up', () => link.stats().up && link.stats().opened >= opened),
    untilDown: async () => eventually('the link is down', () => states.at(-1)?.[0] === false),
    untilReceived: async (count: number) =>
      eventually(`${count} frames were received`, () => frames.length >= count),
  };
}
