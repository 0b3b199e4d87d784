/** Serves the devices of one driver concurrently: the loss of one does not affect the others. */
import { DeviceRejected } from '../errors.ts';
import type { SessionState } from './device-session.ts';

export interface MemberSession {
  /** Aborts when the driver must stop, and when all its devices reject the connector. */
  readonly signal: AbortSignal;
  /** Receives each state of the member's device session. */
  readonly onState: (state: SessionState) => void;
}

/**
 * Runs until `signal` aborts. Rejects with `DeviceRejected` when every device rejects the connector at the same time: then
 * the driver as a whole is shown as rejected. `serve` resolves when its signal has aborted.
 */
export async function serveDevices<D extends { readonly name: string }>(
  devices: readonly D[],
  signal: AbortSignal,
  serve: (device: D, session: MemberSession) => Promise<void>,
): Promise<void> {
  const over = new AbortController();
  const ended = AbortSignal.any([signal, over.signal]);
  const rejections = new Map<D, Rejection>();
  const stateOf = (device: D) => (state: SessionState) => {
    if (ended.aborted) return;
    if (state.state === 'rejected') rejections.set(device, state);
    else rejections.delete(device);
    if (rejections.size === devices.length) over.abort();
  };
  try {
    await Promise.all(
      devices.map(async (device) => serve(device, { signal: ended, onState: stateOf(device) })),
    );
  } finally {
    over.abort();
  }
  if (signal.aborted) return;
  const sentences = Array.from(rejections, ([{ name }, { reason }]) => `${name} ${reason}`);
  throw new DeviceRejected(sentences.join('; '), { may_pass: rejections.values().some(mayPass) });
}

type Rejection = Extract<SessionState, { readonly state: 'rejected' }>;

function mayPass({ error }: Rejection): boolean {
  return error instanceof DeviceRejected && error.may_pass;
}
