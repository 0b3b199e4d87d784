/** Serves the devices of one driver that is rejected as a whole once all of them reject the connector. */
import type { FeedSet } from '../../contract/feeds.ts';
import type { IdentityBindings } from '../driver/identity-bindings.ts';
import { DeviceRejected } from '../../platform/errors.ts';
import { DeviceGroup, type DeviceGroupParts } from './device-group.ts';
import type { SessionState } from './device-session.ts';

export interface ServedDevices<D extends { readonly name: string }, F extends FeedSet> extends Omit<
  DeviceGroupParts<D, F>,
  'onState'
> {
  readonly devices: readonly D[];
  /** Identities of the devices: they are on disk when the driver ends. */
  readonly bindings: Pick<IdentityBindings, 'saved'>;
  /** The driver goes on while every device rejects the connector. */
  readonly staysWhenRejected?: boolean | undefined;
  /** Receives a function that takes another list; it returns undefined once the driver ends (see `DeviceGroup.change`). */
  readonly onStart?: (change: (devices: readonly D[]) => readonly string[] | undefined) => void;
}

/**
 * Runs until the host's signal aborts. Rejects with `DeviceRejected` when every device rejects the connector at the same time:
 * then the driver as a whole is shown as rejected.
 */
export async function serveDevices<D extends { readonly name: string }, F extends FeedSet>({
  devices,
  bindings,
  onStart,
  staysWhenRejected = false,
  ...parts
}: ServedDevices<D, F>): Promise<void> {
  const rejections = new Map<string, Rejection>();
  let count = devices.length;
  const endIfRejected = (): void => {
    if (!staysWhenRejected && count > 0 && rejections.size === count) group.end();
  };
  const group = new DeviceGroup({
    ...parts,
    onState({ name }, state) {
      if (state.state === 'rejected') rejections.set(name, state);
      else rejections.delete(name);
      endIfRejected();
    },
  });
  group.change(devices);
  onStart?.((next) => {
    if (group.isOver) return undefined;
    count = next.length;
    const again = group.change(next);
    const names = new Set(next.map(({ name }) => name));
    for (const name of rejections.keys())
      if (!names.has(name) || again.includes(name)) rejections.delete(name);
    endIfRejected();
    return again;
  });
  try {
    await group.ended();
  } finally {
    await bindings.saved();
  }
  if (parts.host.signal.aborted) return;
  const sentences = Array.from(rejections, ([name, { reason }]) => `${name} ${reason}`);
  throw new DeviceRejected(sentences.join('; '), { may_pass: rejections.values().some(mayPass) });
}

type Rejection = Extract<SessionState, { readonly state: 'rejected' }>;

function mayPass({ error }: Rejection): boolean {
  return error instanceof DeviceRejected && error.may_pass;
}
