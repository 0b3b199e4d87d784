/** Opens links for a test and records their frames, states and failures. */
import { afterEach, beforeEach } from 'vitest';
import { linkOptions } from '../../../../../drivers/mavlink/options.ts';
import { type LinkNeeds, openLink } from '../../../../../drivers/mavlink/links/link.ts';
import { eventually } from '../../../../support/eventually.ts';
import { freePort } from '../../../../support/ports.ts';

export let over: AbortController;
/** The links of each test of the file that calls it end with the test. */
export function useLinks(): void {
  beforeEach(() => {
    over = new AbortController();
  });
  afterEach(() => over.abort());
}

interface Received {
  readonly seq: number;
  readonly sysid: number;
  readonly peer: string;
  readonly signature_ok: boolean | null;
}

interface OpenedOptions extends Partial<LinkNeeds> {
  readonly to?: number;
  readonly host?: string;
  readonly throwOn?: number;
}

/** Opens a link; `throwOn` makes its listener throw on the frame with that sequence number. */
export function listen(options: object, needs: Partial<LinkNeeds> = {}, throwOn?: number) {
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
    { signal: over.signal, ...needs },
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

/** Opens a link of the loopback on a free port of its own, and waits until it is up. `to`: of its vehicle, as a client. */
export async function opened(
  kind: 'udp_listen' | 'tcp_listen' | 'udp_client',
  { to, host = '127.0.0.1', throwOn, ...needs }: OpenedOptions = {},
) {
  const port = await freePort();
  const ports = to === undefined ? { port } : { port: to, local_port: port };
  const lab = listen({ kind, host, ...ports }, needs, throwOn);
  await lab.untilUp();
  return { ...lab, port };
}
