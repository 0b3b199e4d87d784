/** Formats the links of the kit with their status and its reason. Pure. */
import type { StatusReport } from '../../local/api.ts';
import { type Paint, table } from '../terminal/shell.ts';
import { fold } from '../terminal/width.ts';

type LinkReport = NonNullable<StatusReport['links']>[number];

/** A row for each link, what is unknown left empty, and below it the reason where there is one. */
export function linkLines(links: StatusReport['links'], paint: Paint, columns?: number): readonly string[] {
  if (!links || links.length === 0) return [];
  const rows = table(
    links.map((link) => row(link, paint)),
    indent,
    columns,
  );
  const lines = [paint('bold', 'links')];
  for (const [at, { reason }] of links.entries()) {
    lines.push(rows[at] ?? '');
    if (reason !== null)
      lines.push(...fold(`${indent}  ${paint('dim', reason)}`, columns, indent.length + 2));
  }
  return lines;
}

const indent = '  ';

function row(link: LinkReport, paint: Paint): readonly string[] {
  return [
    link.name,
    link.type ?? '',
    statusText(link, paint),
    answers(link),
    pair(link.rx_bps, link.tx_bps, rate),
    today(link),
    [link.isp, link.ip].flatMap((text) => text ?? []).join(' '),
  ];
}

function statusText({ status }: LinkReport, paint: Paint): string {
  if (!status) return paint('dim', 'unknown');
  return paint(status === 'offline' ? 'bad' : 'good', status);
}

function answers({ latency_ms, packet_loss_pct }: LinkReport): string {
  const latency = measured(latency_ms, (ms) => `${Math.round(ms)} ms`);
  const loss = measured(packet_loss_pct, (pct) => `${pct.toFixed(1)} % lost`);
  return [latency, loss].filter(Boolean).join(', ');
}

function today({ usage }: LinkReport): string {
  const used = pair(usage?.today_rx_gb, usage?.today_tx_gb, (gb) =>
    gb < 1 ? `${Math.round(gb * 1e3)} MB` : `${gb.toFixed(1)} GB`,
  );
  return used && `today ${used}`;
}

function pair(
  rx: number | null | undefined,
  tx: number | null | undefined,
  show: (value: number) => string,
): string {
  return [measured(rx, (value) => `down ${show(value)}`), measured(tx, (value) => `up ${show(value)}`)]
    .filter(Boolean)
    .join(', ');
}

function measured(value: number | null | undefined, show: (value: number) => string): string {
  return value === null || value === undefined ? '' : show(value);
}

function rate(bps: number): string {
  return bps < 1e6 ? `${Math.round(bps / 1e3)} kbit/s` : `${(bps / 1e6).toFixed(1)} Mbit/s`;
}
