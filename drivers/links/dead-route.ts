/** Finds traffic that the routes of this machine send out by a dead link although another link answers. */
import type { DriverLog } from '../../src/toolkit/driver/driver.ts';
import { texts } from './texts.ts';
import type { TableLink } from './status.ts';

/** A link as the kernel's routes see it. */
export interface RoutedLink extends TableLink {
  /** Unmarked traffic of this machine leaves by it. */
  readonly isSelected: boolean;
  /** `balanced` in the configuration: a firewall chooses the link by marks. */
  readonly isBalanced: boolean;
}

interface DeadRoute {
  readonly since_ms: number;
  isLogged: boolean;
}

/** A failover service needs some seconds to notice a dead link: until then the routes are only named, later they are a fault. */
export class DeadRoutes {
  readonly #log: DriverLog;
  readonly #failover_ms: number;
  readonly #dead = new Map<string, DeadRoute>();

  constructor(log: DriverLog, failover_ms: number) {
    this.#log = log;
    this.#failover_ms = failover_ms;
  }

  /** Adds to the reasons of the links what their routes mean, and to a dead link that stays in use its weakness. */
  explain(links: readonly RoutedLink[], mono_ms: number): readonly TableLink[] {
    const able = links.filter(({ link }) => link.status === 'online' || link.status === 'standby');
    // Where marks decide, the routes do not show what carries the traffic.
    const isDecidedByRoutes = able.length > 0 && links.every(({ isBalanced }) => !isBalanced);
    const dead = isDecidedByRoutes
      ? links.filter(({ link, isSelected }) => isSelected && link.status === 'offline')
      : [];
    const names = (all: readonly TableLink[]): string => all.map(({ link }) => link.name).join(', ');
    this.#forget(new Set(dead.map(({ link }) => link.name)));
    return links.map(({ isSelected: _selected, isBalanced: _balanced, ...known }) => {
      const { name, status } = known.link;
      if (dead.some(({ link }) => link.name === name)) {
        const weakness = this.#isLasting(name, names(able), mono_ms)
          ? texts.dead_link_in_use(name, names(able))
          : null;
        return { ...known, reason: joined(known.reason, texts.still_in_use), weakness };
      }
      const isWaiting = status === 'standby' && dead.length > 0;
      return isWaiting ? { ...known, reason: texts.dead_link_selected(names(dead)) } : known;
    });
  }

  #isLasting(name: string, able: string, mono_ms: number): boolean {
    const known = this.#dead.get(name) ?? { since_ms: mono_ms, isLogged: false };
    this.#dead.set(name, known);
    if (mono_ms - known.since_ms < this.#failover_ms) return false;
    if (!known.isLogged)
      this.#log.warn({ link: name, able, remedy: texts.set_up_failover }, texts.no_failover);
    known.isLogged = true;
    return true;
  }

  #forget(kept: ReadonlySet<string>): void {
    for (const [name, { isLogged }] of this.#dead) {
      if (kept.has(name)) continue;
      this.#dead.delete(name);
      if (isLogged) this.#log.info({ link: name }, texts.no_failover_over);
    }
  }
}

function joined(reason: string | null, more: string): string {
  return reason === null ? more : `${reason}; ${more}`;
}
