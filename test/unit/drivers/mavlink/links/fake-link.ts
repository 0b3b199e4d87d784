/** A link, and a vehicle that is received over such links, without sockets. */
import { carryOut } from '../../../../../drivers/mavlink/commands/exchange.ts';
import type { Order } from '../../../../../drivers/mavlink/commands/ways.ts';
import type { Link } from '../../../../../drivers/mavlink/links/link.ts';
import { LinkTally } from '../../../../../drivers/mavlink/links/link-tally.ts';
import { Outgoing } from '../../../../../drivers/mavlink/links/outgoing.ts';
import { KnownMetadata } from '../../../../../drivers/mavlink/reports/metadata-fetch.ts';
import { type Addressee, Changes } from '../../../../../drivers/mavlink/vehicles/addressee.ts';
import { Contact, type ContactHost } from '../../../../../drivers/mavlink/vehicles/contact.ts';
import { parseDatagram } from '../../../../../drivers/mavlink/wire/framer.ts';
import { decode, type Decoded } from '../../../../../drivers/mavlink/wire/messages.ts';

export const kit = { sysid: 245, compid: 191, passive: false, signing: undefined } as const;
export const rates = { position_hz: 2, attitude_hz: 4, status_hz: 1 };

/** It accepts all, and loses it. */
export function fakeLink(about: Partial<Link> = {}): Link {
  return {
    name: 'field',
    high_latency: false,
    send: () => true,
    discard: () => undefined,
    hasRoom: () => true,
    isNamed: () => false,
    stats: () => new LinkTally().stats(),
    ended: Promise.resolve(),
    ...about,
  };
}

/** An autopilot that is received over this link. */
export function contactOver(
  link: Link,
  about: Partial<ContactHost> = {},
  now_ms = performance.now(),
): Contact {
  const host: ContactHost = {
    out: new Outgoing(kit),
    options: { passive: false, streams: rates },
    rivals: { isAt: () => false, seen: () => undefined },
    metadata: new KnownMetadata(),
    metadataFault: () => undefined,
    text: () => undefined,
    event: () => undefined,
    ...about,
  };
  return new Contact({ link, peer: 'copter', sysid: 1, compid: 1, isNamed: false, now_ms }, host);
}

/** A vehicle that is received over these; `run` carries an order out. */
export function vehicleOver(contacts: readonly Contact[]) {
  const changes = new Changes();
  const [contact] = contacts;
  if (!contact) throw new Error('it has a link');
  const to: Addressee = {
    name: 'Falcon',
    contact,
    contacts,
    changes,
    watchStart: () => () => false,
    conflict: () => undefined,
  };
  return {
    receive: (message: Decoded, over = contact): void => {
      over.receive(message, performance.now());
      changes.notify();
    },
    run: async (order: Order, within_ms = 10_000) => {
      const due_ms = performance.now() + within_ms;
      return carryOut(to, order, {
        signal: new AbortController().signal,
        progress: () => undefined,
        remaining_ms: () => Math.max(0, due_ms - performance.now()),
      });
    },
  };
}

/** Passes on each message in the bytes. */
export function read(bytes: Uint8Array, receive: (message: Decoded) => void): void {
  parseDatagram(bytes, {
    frame: (frame) => {
      const message = decode(frame);
      if (message) receive(message);
    },
  });
}
