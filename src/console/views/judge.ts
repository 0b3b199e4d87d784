/** How a kit of the list is, from its summary. */
import { label, plain, sentence } from '../world/text.ts';
import { t } from '../words/words.ts';
import type { KitResource } from '../types.d.ts';

/** `trouble`: the more, the sooner a person should look. */
export interface Judged {
  readonly state: 'online' | 'attention' | 'offline' | 'none';
  readonly reasons: readonly string[];
  readonly trouble: number;
}

/** A bad condition counts as much as so many others. */
const bad_weight = 10;
/** By state: offline before attention before never reported before online. */
const weights = { offline: 3_000, attention: 2_000, none: 1_000, online: 0 };

const known: WeakMap<KitResource, readonly [words: object, judged: Judged]> = new WeakMap();

/** Judges a kit once: entries are replaced, never changed. */
export function judge(kit: KitResource): Judged {
  const [words, before] = known.get(kit) ?? [];
  if (before && words === t) return before;
  const conditions = kit.summary.attention;
  const reasons = reasonsOf(conditions, assetsOffline(kit));
  const state = !kit.last_seen
    ? 'none'
    : !kit.online
      ? 'offline'
      : reasons.length > 0
        ? 'attention'
        : 'online';
  const bad = conditions.filter(({ level }) => level === 'bad').length;
  const trouble = weights[state] + bad * bad_weight + conditions.length;
  const judged: Judged = { state, reasons: state === 'none' ? [t.hero.never] : reasons, trouble };
  known.set(kit, [t, judged]);
  return judged;
}

type Condition = KitResource['summary']['attention'][number];

/** All of them: the list of what needs a person is cut. */
export function assetsOffline({ summary }: KitResource): number {
  return summary.assets.total - summary.assets.online;
}

/** One sentence for each condition; assets together, and without what the state already shows. */
function reasonsOf(conditions: readonly Condition[], assets: number): readonly string[] {
  const rest = conditions.filter(({ key }) => key !== 'asset' && key !== 'offline' && key !== 'never');
  return [
    ...rest.map((each) => `${conditionText(each)}.`),
    ...(conditions.some(({ key }) => key === 'asset') ? [`${t.kits.assetsOffline(assets)}.`] : []),
  ];
}

/** What needs a person, without the end of a sentence. */
export function conditionText({
  key,
  subject = '',
  value = 0,
}: Pick<Condition, 'subject' | 'value'> & { readonly key: string }): string {
  const n = Math.round(value);
  switch (key) {
    case 'battery':
      return t.attention.kitBattery(n);
    case 'link':
      return t.attention.linkOffline(plain(subject));
    case 'fix':
      return t.kits.positionOld;
    case 'queue':
      return t.attention.queue(n);
    case 'dropped':
      return t.attention.dropped(n);
    case 'refused':
      return t.attention.rejected(n);
    default:
      return sentence(subject === '' ? label(key) : plain(subject));
  }
}
