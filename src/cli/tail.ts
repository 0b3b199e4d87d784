/** `kit-connector tail`: prints a line for each published message. */
import { didYouMean } from '../kit/config/faults.ts';
import { edgeEvents, publishedFeeds } from '../contract/feeds.ts';
import type { StatusReport } from '../kit/local/api.ts';
import { findAsset } from '../kit/local/find-asset.ts';
import { type DaemonOptions, findDaemon } from './daemon/client.ts';
import { type Shell, complain, exit, say } from './terminal/shell.ts';
import { printableJson } from '../platform/foreign-text.ts';
import { tailScreen, type TailScreenOptions } from './terminal/tail-screen.ts';
import { texts } from './texts.ts';

interface TailOptions extends DaemonOptions, TailScreenOptions {
  readonly asset?: string;
  readonly feed?: string;
}

/** Values of `--feed` beside the names of feeds. */
const other_messages = ['asset', 'commands', 'task', 'telemetry', 'state', 'drops'] as const;

export async function tail(options: TailOptions, shell: Shell): Promise<number> {
  const daemon = await findDaemon(options, shell);
  const screen = tailScreen(shell, options);
  if (options.asset !== undefined || options.feed !== undefined) {
    complain(shell, ...doubts(options, (await daemon.status()).assets));
  }
  if (!options.json) await screen.follow(async () => daemon.status());
  for await (const line of daemon.tail({ asset: options.asset, feed: options.feed })) {
    if (options.json) say(shell, printableJson(JSON.stringify(line)));
    else screen.print(line);
  }
  if (shell.signal.aborted) return exit.ok;
  complain(shell, 'kit-connector stopped');
  return exit.unavailable;
}

/** Warns about filters that match no known asset or feed. The asset may connect later. */
function doubts({ asset, feed }: TailOptions, assets: StatusReport['assets']): readonly string[] {
  const found = asset === undefined ? undefined : findAsset(assets, asset);
  const no_asset = found && 'fault' in found ? [texts.waiting_for_asset(found.fault)] : [];
  const known: readonly string[] = [
    ...other_messages,
    ...[...Object.values(publishedFeeds), edgeEvents].flatMap((feeds) => Object.keys(feeds)),
    ...assets.flatMap(({ feeds }) => Object.keys(feeds)),
  ];
  if (feed === undefined || known.includes(feed)) return no_asset;
  const guess = didYouMean(feed, known);
  const hint = guess === undefined ? '' : texts.did_you_mean(guess);
  return [...no_asset, texts.feed_not_found(feed, hint)];
}
