/** `kit-connector tail`: follows what is published, a line each. */
import { didYouMean } from '../config/faults.ts';
import { edgeEvents, publishedFeeds } from '../contract/feeds.ts';
import type { StatusReport } from '../local/api.ts';
import { findAsset } from '../local/find-asset.ts';
import { type DaemonOptions, findDaemon } from './daemon-client.ts';
import { type Shell, complain, exit, painter, say } from './shell.ts';
import { tailText } from './tail-view.ts';

export interface TailOptions extends DaemonOptions {
  readonly asset?: string;
  readonly feed?: string;
}

/** What `--feed` takes beside names of feeds. */
const other_messages = ['asset', 'commands', 'task', 'telemetry', 'state', 'drops'] as const;

export async function tail(options: TailOptions, shell: Shell): Promise<number> {
  const daemon = await findDaemon(options, shell);
  const paint = painter(shell);
  if (options.asset !== undefined || options.feed !== undefined) {
    complain(shell, ...doubts(options, (await daemon.status()).assets));
  }
  for await (const line of daemon.tail({ asset: options.asset, feed: options.feed })) {
    say(shell, options.json ? JSON.stringify(line) : tailText(line, paint, shell.out.columns));
  }
  if (shell.signal.aborted) return exit.ok;
  complain(shell, 'kit-connector has stopped');
  return exit.unavailable;
}

/** What may never come. An asset that was not switched on yet may. */
function doubts({ asset, feed }: TailOptions, assets: StatusReport['assets']): readonly string[] {
  const found = asset === undefined ? undefined : findAsset(assets, asset);
  const no_asset = found && 'fault' in found ? [`${found.fault}; waiting for one (Ctrl-C ends)`] : [];
  const known: readonly string[] = [
    ...other_messages,
    ...[...Object.values(publishedFeeds), edgeEvents].flatMap((feeds) => Object.keys(feeds)),
    ...assets.flatMap(({ feeds }) => Object.keys(feeds)),
  ];
  if (feed === undefined || known.includes(feed)) return no_asset;
  const guess = didYouMean(feed, known);
  const hint = guess === undefined ? '' : ` (did you mean "${guess}"?)`;
  return [...no_asset, `nothing here is called "${feed}"${hint}; waiting for it (Ctrl-C ends)`];
}
