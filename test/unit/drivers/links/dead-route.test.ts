/** Traffic that the routes of the machine send out by a dead link. */
import { expect, it } from 'vitest';
import { DeadRoutes, type RoutedLink } from '../../../../drivers/links/dead-route.ts';
import { linksOptions } from '../../../../drivers/links/options.ts';
import { linkReports } from '../../../../drivers/links/links.ts';
import { texts } from '../../../../drivers/links/texts.ts';
import { recordingLog } from '../../../support/recording-log.ts';

const link = (name: string, more: Partial<RoutedLink> & Pick<RoutedLink['link'], 'status'>): RoutedLink => {
  const { status, ...rest } = more;
  const base = { reason: null, cause: null, cap: null, since_ms: null, weakness: null };
  return { ...base, isSelected: false, isBalanced: false, ...rest, link: { name, status } };
};
const dead = link('sat0', { status: 'offline', isSelected: true, reason: texts.no_carrier });
const waiting = link('wwan0', { status: 'standby', reason: texts.other_link_selected });

it('is named at once in the reasons, and is a fault once failover had its time', () => {
  const log = recordingLog();
  const routes = new DeadRoutes(log, 60_000);
  const seen = (links: readonly RoutedLink[], mono_ms: number) =>
    routes.explain(links, mono_ms).map(({ reason, weakness }) => [reason, weakness]);
  const [dead_reason, waiting_reason] = [
    `${texts.no_carrier}; ${texts.still_in_use}`,
    texts.dead_link_selected('sat0'),
  ];
  expect(seen([waiting, dead], 0)).toEqual([
    [waiting_reason, null],
    [dead_reason, null],
  ]);
  expect(log.lines).toEqual([]);
  for (const mono_ms of [60_000, 65_000])
    expect(seen([waiting, dead], mono_ms)).toEqual([
      [waiting_reason, null],
      [dead_reason, texts.dead_link_in_use('sat0', 'wwan0')],
    ]);
  expect(log.lines).toMatchObject([
    {
      level: 'warn',
      sentence: texts.no_failover,
      facts: { link: 'sat0', able: 'wwan0', remedy: texts.set_up_failover },
    },
  ]);
  const switched = [
    { ...dead, isSelected: false },
    { ...waiting, isSelected: true },
  ];
  expect(seen(switched, 70_000)).toEqual(switched.map(({ reason }) => [reason, null]));
  expect(log.lines.slice(1)).toMatchObject([{ level: 'info', sentence: texts.no_failover_over }]);
  expect(seen([waiting, dead], 80_000)[1]).toEqual([dead_reason, null]);
});

it.each([
  ['no other link answers', [dead, { ...waiting, link: { ...waiting.link, status: 'offline' as const } }]],
  ['marks decide', [dead, { ...waiting, isBalanced: true }]],
  ['the dead link is not in use', [{ ...dead, isSelected: false }, waiting]],
])('is no fault where %s', (_case, links) => {
  const routes = new DeadRoutes(recordingLog(), 0);
  const known = links.map(({ isSelected: _selected, isBalanced: _balanced, ...rest }) => rest);
  expect(routes.explain(links, 0)).toEqual(known);
});

it('stands in the report of the link with what a technician does about it', () => {
  const weakness = texts.dead_link_in_use('sat0', 'wwan0');
  const all = [{ ...dead, cause: 'no_carrier' as const, weakness }, waiting];
  expect(linkReports(all, linksOptions.parse({}), 0)).toMatchObject([
    { name: 'sat0', state: 'offline', reason: `${texts.no_carrier}; ${texts.remedies.no_carrier}`, weakness },
    { name: 'wwan0', state: 'online', reason: null },
  ]);
});
