/** Metrics whose value is asked for at each scrape, so that a figure lives in one place only. */
import { Counter, Gauge, type Registry } from 'prom-client';

export const prefix = 'kit_connector_';

export interface Sample {
  readonly value: number;
  readonly labels?: Readonly<Record<string, string>>;
}

export interface About {
  /** Without the prefix; with its unit, and `_total` for a counter. */
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly string[];
}

type Read = () => readonly Sample[] | Promise<readonly Sample[]>;

/** A figure that goes up and down. What is not in the answer of `read` is not shown. */
export function gauge(registry: Registry, { name, help, labels = [] }: About, read: Read): void {
  const metric: Gauge = new Gauge({
    name: prefix + name,
    help,
    labelNames: labels,
    registers: [registry],
    async collect() {
      const samples = await read();
      metric.reset();
      for (const { labels: of = {}, value } of samples) metric.set(of, value);
    },
  });
}

/** A figure that only grows until the process ends, counted elsewhere. */
export function counter(registry: Registry, { name, help, labels = [] }: About, read: Read): void {
  const metric: Counter = new Counter({
    name: prefix + name,
    help,
    labelNames: labels,
    registers: [registry],
    async collect() {
      const samples = await read();
      metric.reset();
      for (const { labels: of = {}, value } of samples) metric.inc(of, value);
    },
  });
}

export function one(value: number): readonly Sample[] {
  return [{ value }];
}

/** Nothing is shown for what is not known. */
export function known(value: number | null | undefined): readonly Sample[] {
  return value === null || value === undefined ? [] : one(value);
}
