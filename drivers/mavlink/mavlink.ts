/** Drones and vehicles that speak MAVLink: ArduPilot and PX4, over UDP, TCP and serial links, many at once. */
import { droneFeeds } from '../../src/contract/feeds.ts';
import { defineDriver, type DriverHost } from '../../src/driver/driver.ts';
import { messageOf } from '../../src/errors.ts';
import { aborted, every } from '../../src/platform/time.ts';
import { Fleet } from './fleet.ts';
import { type Link, openLink } from './link.ts';
import { linkLog } from './link-log.ts';
import { type MavlinkOptions, mavlinkOptions } from './options.ts';
import { Outgoing } from './outgoing.ts';
import { beat } from './presence.ts';
import { openSigning } from './signing.ts';
import { statusFacts } from './status-facts.ts';

export const mavlink = defineDriver({
  name: 'mavlink',
  feeds: droneFeeds,
  options: mavlinkOptions,
  run: runMavlink,
});

/** Requests, silences and switches of links are looked at this often. */
const tick_ms = 100;
const status_every_ms = 5_000;

async function runMavlink(options: MavlinkOptions, host: DriverHost<typeof droneFeeds>): Promise<void> {
  const { signal, log } = host;
  const signing = options.signing && (await openSigning(options.signing, { signal, log }));
  if (signal.aborted) return;
  const { system_id: sysid, component_id: compid, passive, role } = options;
  const out = new Outgoing({ sysid, compid, passive, signing });
  const fleet = new Fleet({ host, options, out });
  let has_failed = false;
  const links = options.links.map((link_options) => {
    let tell: ReturnType<typeof linkLog> | undefined;
    const link: Link = openLink(
      link_options,
      {
        frame: (frame, peer, now_ms) => fleet.frame(link, frame, peer, now_ms),
        state: (up, reason) => {
          tell ??= linkLog(log, link.name);
          tell(up, reason);
        },
        failed: (thrown) => {
          if (!has_failed)
            log.error({ err: thrown, reason: messageOf(thrown) }, 'a frame could not be handled');
          has_failed = true;
        },
      },
      { signal, signing },
    );
    return link;
  });
  every(tick_ms, signal, () => fleet.tick(performance.now()));
  every(status_every_ms, signal, () => {
    const { vehicles } = fleet;
    host.reportStatus(statusFacts(links, { vehicles, radioOf: (link) => fleet.radioOf(link) }));
  });
  if (!passive) beat(links, { out, role, signal });
  await aborted(signal);
  await Promise.all(links.map(async (link) => link.ended));
}
