/** A fleet of simulated kits in a process of its own, so that it does not slow down what is measured. */
import { fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';

export type FleetOrder =
  | { readonly kind: 'connect'; readonly port: number; readonly kit_ids: readonly string[] }
  /** As fast as the broker takes them. */
  | { readonly kind: 'burst'; readonly of_each: number }
  | { readonly kind: 'pace'; readonly per_s: number; readonly seconds: number };

export interface FleetAnswer {
  /** Messages since the start. */
  readonly sent?: number;
  readonly fault?: string;
}

export interface Fleet {
  readonly kit_ids: readonly string[];
  /** Resolves when the broker has acknowledged everything; answers how many messages that were since the start. */
  order(order: FleetOrder): Promise<number>;
  stop(): void;
}

export function startFleet(kits: number): Fleet {
  const child = fork(new URL('../processes/fleet-kits-process.ts', import.meta.url));
  return {
    kit_ids: Array.from({ length: kits }, () => randomUUID()),
    async order(order) {
      child.send(order);
      const [answer] = (await once(child, 'message')) as [FleetAnswer];
      if (answer.sent === undefined) throw new Error(`the fleet: ${answer.fault}`);
      return answer.sent;
    },
    stop: () => child.disconnect(),
  };
}
