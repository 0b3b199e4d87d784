/** Reads the current detections of a camera, from the three formats of its firmware. Pure. */
import { z } from 'zod';
import { type AiType, aiType } from '../../../src/contract/feeds.ts';
import { type Outcome, valueOf } from '../host/replies.ts';

/** What a camera reports of one channel. Undefined: the message does not contain it. */
export interface Reported {
  readonly channel: number;
  readonly motion: boolean | undefined;
  readonly visitor: boolean | undefined;
  readonly ai: readonly AiType[] | undefined;
}

/** Detections of one channel. Null: unknown, or it has no such detector. */
export interface Alarms {
  readonly motion: boolean | null;
  /** Current state of the detector. */
  readonly ai: readonly AiType[] | null;
  /** What the detector can see. */
  readonly fitted: readonly AiType[];
  /** Somebody rings; absent without a doorbell. */
  readonly visitor?: boolean;
}

/** `support: 0`: the camera has no such detector. Firmware before 3.0.0-494 answers plain numbers. */
const detector = z.union([
  z.looseObject({ alarm_state: z.number(), support: z.number().optional() }),
  z.number().transform((alarm_state) => ({ alarm_state, support: undefined })),
]);
type Detector = z.output<typeof detector>;

/** `people_state` (firmware 3.0.0.177) is `people`. Excludes lists, such as those of crossed lines: their alarm is never cleared. */
const detectors = z.record(z.string(), z.unknown()).transform((all) => {
  const read = Object.entries(all).map(
    ([name, value]) => [name.replace(/_state$/u, ''), detector.safeParse(value).data] as const,
  );
  return new Map(read.flatMap(([name, found]) => (found ? [[name, found] as const] : [])));
});

const events = z.looseObject({
  ai: detectors.optional(),
  md: detector.optional(),
  visitor: detector.optional().catch(undefined),
});
const motionState = z.looseObject({ state: z.number() });

/** GetEvents. Undefined for any other reply. */
export function alarmsOfEvents(outcome: Outcome | undefined): Alarms | undefined {
  const read = valueOf(outcome, events);
  if (!read) return undefined;
  const { md, ai, visitor } = read;
  const bell = visitor?.support === 1 ? { visitor: isOn(visitor) } : {};
  // Battery cameras have no motion detector; their infrared sensor is reported as the detector "other".
  const sensors = [md, ai?.get('other')].filter((found) => found !== undefined && isFitted(found));
  return { motion: sensors.length === 0 ? null : sensors.some(isOn), ...typesOf(ai), ...bell };
}

/** GetMdState and GetAiState, either of which may have failed. */
export function alarmsOfStates(md: Outcome | undefined, ai: Outcome | undefined): Alarms {
  const state = valueOf(md, motionState)?.state;
  const found = valueOf(ai, detectors);
  return { motion: state === undefined ? null : state === 1, ...typesOf(found) };
}

function typesOf(found: ReadonlyMap<string, Detector> = new Map()): Pick<Alarms, 'ai' | 'fitted'> {
  const fitted = aiType.options.filter((type) => {
    const one = found.get(type);
    return one !== undefined && isFitted(one);
  });
  return { ai: fitted.length === 0 ? null : fitted.filter((type) => isOn(found.get(type))), fitted };
}

function isFitted(found: Detector | undefined): boolean {
  return found?.support !== 0;
}

function isOn(found: Detector | undefined): boolean {
  return found?.alarm_state === 1;
}
