/** Which links the kernel's rules and default routes select. */
import { describe, expect, it } from 'vitest';
import {
  carriersOfTunnel,
  type DefaultRoute,
  failoverOrder,
  plain_rules,
  refusedFamilies,
  refusesTraffic,
  routedInterfaces,
  type Routing,
  type Rule,
  selectedInterfaces,
  serverOnly,
  table_main,
} from '../../../../drivers/links/routes/routing.ts';

const [sat, cell, vpn] = [3, 4, 9];
const route = (ifindex: number, more: Partial<DefaultRoute> = {}): DefaultRoute => ({
  family: 4,
  table: table_main,
  metric: 0,
  paths: [{ ifindex, weight: 1, alive: true }],
  ...more,
});
const rule = (more: Partial<Rule>): Rule => ({
  family: 4,
  priority: 100,
  table: 100,
  matches: 'all',
  skips_defaults: false,
  ...more,
});
const selected = (routes: readonly DefaultRoute[], rules: readonly Rule[] = []) => {
  const routing: Routing = {
    routes,
    rules: [...rules, ...plain_rules],
    host_routed: [],
    ways: [],
    named: new Map(),
    addresses: null,
  };
  return selectedInterfaces(routing, (ifindex) => ifindex === vpn, []);
};

it('selects the lowest metric of the main table', () => {
  expect(selected([route(cell, { metric: 700 }), route(sat, { metric: 100 })])).toEqual([sat]);
  expect(selected([])).toEqual([]);
});

it('ignores a path that the kernel ignores', () => {
  const dead = [{ ifindex: sat, weight: 1, alive: false }];
  expect(selected([route(sat, { paths: dead }), route(cell, { metric: 700 })])).toEqual([cell]);
});

it('selects every path of a multipath route, the heavier first', () => {
  const paths = [
    { ifindex: cell, weight: 1, alive: true },
    { ifindex: sat, weight: 3, alive: true },
  ];
  expect(selected([route(sat, { paths })])).toEqual([sat, cell]);
});

it('selects the first of several IPv4 routes with one metric, and all of IPv6', () => {
  expect(selected([route(cell), route(sat)])).toEqual([cell]);
  const dead = [{ ifindex: cell, weight: 1, alive: false }];
  expect(selected([route(cell, { paths: dead }), route(sat)])).toEqual([sat]);
  expect(selected([route(cell, { family: 6 }), route(sat, { family: 6 })])).toEqual([cell, sat]);
});

it('orders the links as the kernel would take them, one after the other', () => {
  const order = (routes: readonly DefaultRoute[], rules: readonly Rule[] = []) =>
    failoverOrder(
      {
        routes,
        rules: [...rules, ...plain_rules],
        host_routed: [],
        ways: [],
        named: new Map(),
        addresses: null,
      },
      (ifindex) => ifindex === vpn,
      selected(routes, rules),
    );
  const other = 5;
  const routes = [
    route(other, { metric: 900 }),
    route(vpn),
    route(cell, { metric: 700 }),
    route(sat, { metric: 100 }),
  ];
  expect(order(routes)).toEqual([sat, cell, other]);
  expect(order([...routes, route(cell, { table: 100 })], [rule({})])).toEqual([cell, sat, other]);
  expect(order([route(sat, { metric: 1, paths: [] }), route(cell, { metric: 2 })])).toEqual([]);
  expect(order([])).toEqual([]);
});

it('orders hundreds of links while it looks at each a few times only', () => {
  const count = 400;
  const routes = Array.from({ length: count }, (_, at) => route(at + 1, { metric: count - at }));
  let looks = 0;
  const isTunnel = (): boolean => {
    looks += 1;
    return false;
  };
  const routing = {
    routes,
    rules: plain_rules,
    host_routed: [],
    ways: [],
    named: new Map(),
    addresses: null,
  };
  const order = failoverOrder(routing, isTunnel, selectedInterfaces(routing, isTunnel, []));
  expect(order).toEqual(Array.from({ length: count }, (_, at) => count - at));
  expect(looks).toBeLessThanOrEqual(2 * count);
});

it('detects a default route that refuses all traffic, and none behind a usable one', () => {
  const refuses = (...routes: readonly DefaultRoute[]) =>
    refusesTraffic({
      routes,
      rules: plain_rules,
      host_routed: [],
      ways: [],
      named: new Map(),
      addresses: null,
    });
  const blackhole = route(0, { paths: [], metric: 5 });
  expect(refuses(blackhole, route(sat, { metric: 100 }))).toBe(true);
  expect(refuses({ ...blackhole, metric: 500 }, route(sat, { metric: 100 }))).toBe(false);
  expect(refuses()).toBe(false);
});

it('detects a rule that refuses all traffic before the main table, in its family only', () => {
  const routing = (...rules: readonly Rule[]): Routing => ({
    routes: [route(sat), route(sat, { family: 6 })],
    rules: [...rules, ...plain_rules],
    host_routed: [],
    ways: [],
    named: new Map(),
    addresses: null,
  });
  const refusal = rule({ table: null });
  expect(refusedFamilies(routing(refusal))).toEqual([4]);
  expect(refusedFamilies(routing({ ...refusal, matches: 'marked' }))).toEqual([]);
  expect(refusedFamilies(routing({ ...refusal, priority: 40_000 }))).toEqual([]);
  expect(selectedInterfaces({ ...routing(refusal), routes: [route(sat)] }, () => false, [])).toEqual([]);
});

it('follows a rule for all traffic to its table before the main one', () => {
  const routes = [route(sat), route(cell, { table: 100 })];
  expect(selected(routes, [rule({})])).toEqual([cell]);
  expect(selected(routes, [rule({ skips_defaults: true })])).toEqual([sat]);
});

it('does not follow rules for marked traffic or for other conditions', () => {
  const routes = [route(sat), route(cell, { table: 100 })];
  expect(selected(routes, [rule({ matches: 'marked' }), rule({ matches: 'some' })])).toEqual([sat]);
});

it('follows a tunnel to the link that carries it', () => {
  expect(selected([route(vpn, { table: 51_820 }), route(sat)], [rule({ table: 51_820 })])).toEqual([sat]);
});

it('finds the link below a tunnel that has the only default route by the host route to its server', () => {
  const isTunnel = (ifindex: number): boolean => ifindex === vpn;
  const routing = (routes: readonly DefaultRoute[]): Routing => ({
    routes,
    rules: plain_rules,
    host_routed: [cell, vpn],
    ways: [],
    named: new Map(),
    addresses: null,
  });
  const only = routing([route(vpn)]);
  expect(carriersOfTunnel(only, isTunnel)).toEqual([cell]);
  expect(selectedInterfaces(only, isTunnel, [cell])).toEqual([cell]);
  expect(failoverOrder(only, isTunnel, [cell])).toEqual([cell]);
  expect([...routedInterfaces(only, [cell])]).toEqual([vpn, cell]);
  for (const other of [[route(vpn), route(sat)], [], [route(vpn, { metric: 9 }), route(vpn, { paths: [] })]])
    expect(carriersOfTunnel(routing(other), isTunnel)).toEqual([]);
});

it('selects nothing where a default refuses', () => {
  expect(selected([route(sat, { metric: 10 }), route(cell, { paths: [] })])).toEqual([]);
});

it('selects for each family on its own', () => {
  expect(selected([route(sat), route(cell, { family: 6, metric: 1_024 })])).toEqual([sat, cell]);
});

describe('what the kernel answers for addresses all over the internet', () => {
  const isTunnel = (ifindex: number): boolean => ifindex === vpn;
  const way = (ifindex: number, table = table_main) => ({ family: 4 as const, ifindex, table });
  const chosen = (routing: Partial<Routing>) => {
    const whole = { ...none, rules: plain_rules, ...routing };
    const carriers = carriersOfTunnel(whole, isTunnel);
    return {
      selected: selectedInterfaces(whole, isTunnel, carriers),
      only_server: serverOnly(whole, carriers),
    };
  };
  const none: Routing = {
    routes: [],
    rules: [],
    host_routed: [],
    ways: [],
    named: new Map(),
    addresses: null,
  };

  it.each<readonly [string, Partial<Routing>, readonly number[], readonly number[]]>([
    // openwrt/packages#29198: 0.0.0.0/1 and 128.0.0.0/1 over a plain link.
    ['more specific than a default', { routes: [route(sat)], ways: [way(cell)] }, [cell], []],
    ['half here, half there', { routes: [route(sat)], ways: [way(cell), way(sat)] }, [cell, sat], []],
    [
      'one path of several, as for each packet',
      {
        routes: [route(0, { paths: [sat, cell].map((ifindex) => ({ ifindex, weight: 1, alive: true })) })],
        ways: [way(cell)],
      },
      [sat, cell],
      [],
    ],
    // ics-openvpn#175: redirect-gateway def1 beside the default route of another link.
    [
      'a VPN in the main table whose server has a host route',
      { routes: [route(sat)], ways: [way(vpn)], host_routed: [cell] },
      [cell],
      [cell],
    ],
    [
      'the same, by a link with a default route of its own',
      { routes: [route(sat), route(cell, { metric: 7 })], ways: [way(vpn)], host_routed: [cell] },
      [cell],
      [],
    ],
    [
      'a VPN whose host route leads where the default route does',
      { routes: [route(sat)], ways: [way(vpn)], host_routed: [sat, cell] },
      [sat],
      [],
    ],
    // wg-quick: its own packets are marked and follow the default routes.
    [
      'a VPN in a table of its own',
      { routes: [route(sat)], ways: [way(vpn, 51_820)], host_routed: [cell] },
      [sat],
      [],
    ],
  ])('decides: %s', (_name, routing, links, only_server) => {
    const { selected: found, only_server: below } = chosen(routing);
    expect(found).toEqual(links);
    expect(below.filter((ifindex) => found.includes(ifindex))).toEqual(only_server);
  });

  it('shows that nothing is refused', () => {
    const refusal = { ...none, rules: plain_rules, routes: [route(0, { paths: [] })], ways: [way(cell)] };
    expect(refusedFamilies(refusal)).toEqual([]);
  });
});
