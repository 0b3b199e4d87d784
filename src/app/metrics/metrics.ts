/** The daemon's figures for Prometheus. Loaded only when the configuration asks for them; nothing is measured twice. */
import { Registry } from 'prom-client';
import type { ReportParts } from '../status-report.ts';
import { bufferMetrics } from './buffer.ts';
import { fleetMetrics } from './kit-metrics.ts';
import { processMetrics } from './process.ts';
import { uplinkMetrics } from './uplink.ts';

export interface Metrics {
  readonly content_type: string;
  /** The text exposition format. */
  readonly scrape: () => Promise<string>;
}

/** Counts from now until `signal` aborts. */
export function openMetrics(parts: ReportParts, signal: AbortSignal): Metrics {
  const registry = new Registry();
  processMetrics(registry, parts);
  bufferMetrics(registry, parts);
  uplinkMetrics(registry, parts, signal);
  fleetMetrics(registry, parts);
  return { content_type: registry.contentType, scrape: async () => registry.metrics() };
}
