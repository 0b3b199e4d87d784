/** Reads what detectors of cameras report from notifications, whose topics and items differ by maker. Pure. */
import type { OnvifOptions } from '../options.ts';
import { all, attribute, everywhere, find, textAt, truth, type XmlNode } from '../soap/xml.ts';
import { type EventFeed, type EventType, topic_table, type TopicLine } from './topic-table.ts';

/** What is in `ai_detection` is motion, with the types of what is seen. */
export type Detection = Exclude<EventFeed, 'ai_detection'>;

/** State of one detector in one notification. */
export interface DetectorNote {
  /** Topic, source and rule: two detectors never share it. */
  readonly key: string;
  /** `pulse`: an event without an end event. */
  readonly state: 'active' | 'idle' | 'gone' | 'pulse';
  /** Kinds of what is seen or wrong; of an input its name. */
  readonly types: readonly string[];
}

export interface DetectionNote extends DetectorNote {
  readonly detection: Detection;
}

export interface Reading {
  /** Lines of the configuration, which go before the table. */
  readonly own?: readonly TopicLine[];
  /** Called with each topic that has no meaning here, or whose state cannot be read. */
  readonly onUnread?: (topic: string) => void;
}

/** Names of items whose value is the state. */
const state_item =
  /^(?:is[a-z]+|state|logicalstate|value|active|motion|detected|crossed|level|failed|alarm)$/iu;
/** Names of items whose value is the kind of what is seen. */
const class_item = /^(?:classtypes?|objecttypes?|objectclass|class)$/iu;
/** The words of makers for kinds of objects. */
const class_words: readonly (readonly [RegExp, EventType])[] = [
  [/^(?:people|person|human|pedestrian)$/iu, 'people'],
  [/^(?:vehicle|car|truck|bus|van|bike|bicycle|motorcycle|motorbike|licenseplate)$/iu, 'vehicle'],
  [/^(?:animal|pet|dog|cat)$/iu, 'dog_cat'],
  [/^(?:human)?face$/iu, 'face'],
  [/^(?:package|parcel)$/iu, 'package'],
];
/** Of Axis: not a state but measurements. */
const no_state_topic = /\/xinternal_data$|threshold$/u;
const messages_max = 256;
/** Topics have some 60 characters. A longer one is none that is known. */
const topic_chars_max = 1_024;

/** All notifications of a PullMessagesResponse or a Notify, the first ones when there are too many. */
export function notesOf(body: XmlNode, reading: Reading = {}): readonly DetectionNote[] {
  return everywhere(body, 'notificationMessage')
    .slice(0, messages_max)
    .map((notification) => noteOf(notification, reading))
    .filter((note) => note !== undefined);
}

function noteOf(notification: XmlNode, { own = [], onUnread }: Reading): DetectionNote | undefined {
  const reported = textAt(notification, 'topic') ?? '';
  if (reported.length > topic_chars_max) return undefined;
  const topic = plainTopic(reported);
  const line = [...own, ...topic_table].find((each) => isTopicOf(each, topic));
  if (line?.feed === 'none' || no_state_topic.test(topic)) return undefined;
  const note = line && readNote(notification, topic, line);
  if (!note) onUnread?.(reported.trim());
  return note;
}

/** Undefined without a state that can be read. */
function readNote(notification: XmlNode, topic: string, line: TopicLine): DetectionNote | undefined {
  if (line.feed === 'none') return undefined;
  const message = find(notification, 'message', 'message') ?? find(notification, 'message');
  const [source, keys, data] = ['source', 'key', 'data'].map((part) => itemsOf(message, part));
  const items = [...(data ?? []), ...(keys ?? [])];
  const isDeleted = attribute(message, 'propertyOperation')?.toLowerCase() === 'deleted';
  const state = isDeleted ? 'gone' : stateOf(items, line);
  if (state === undefined) return undefined;
  const names = [...(source ?? []), ...(keys ?? [])].map(({ name, value }) => `${name}=${value}`);
  return {
    detection: line.feed === 'ai_detection' ? 'motion' : line.feed,
    key: [topic, ...names.toSorted()].join('|').slice(0, 512),
    state,
    types: typesOf(line, items, source ?? []),
  };
}

function isTopicOf({ topic: end }: TopicLine, topic: string): boolean {
  if (end.endsWith('/*')) return `/${topic}`.includes(`/${end.slice(0, -1)}`);
  return topic === end || topic.endsWith(`/${end}`);
}

/** `tns1:RuleEngine/tt:CellMotionDetector/Motion//.` is `ruleengine/cellmotiondetector/motion`. */
export function plainTopic(topic: string): string {
  return topic
    .trim()
    .replace(/(?<!\/)\/+\.?$/u, '')
    .split('/')
    .map((part) => part.slice(part.indexOf(':') + 1))
    .join('/')
    .toLowerCase();
}

/** What the configuration says of the topics of this camera. */
export function ownTopics(events: OnvifOptions['events'], name: string): readonly TopicLine[] {
  return events
    .filter(({ camera }) => camera === undefined || camera === name)
    .map(({ topic, feed, type, item, inverted }) => ({
      topic: plainTopic(topic),
      feed,
      type,
      item,
      inverted,
      pulse: item === undefined,
    }));
}

interface Item {
  readonly name: string;
  readonly value: string;
}

function stateOf(items: readonly Item[], line: TopicLine): DetectorNote['state'] | undefined {
  const values = stateValues(items, line);
  const isTrue = values.length > 0 ? values.includes(true) : undefined;
  if (isTrue !== undefined) return isTrue === (line.inverted === true) ? 'idle' : 'active';
  if (line.pulse === true) return 'pulse';
  const classes = items.find(({ name }) => class_item.test(name));
  return classes && (classes.value === '' ? 'idle' : 'active');
}

/** Of the named item, else of those with usual names, else of those that say true or false. */
function stateValues(items: readonly Item[], { item }: TopicLine): readonly boolean[] {
  const truths = (some: readonly Item[]): readonly boolean[] =>
    some.map(({ value }) => truth(value)).filter((value) => value !== undefined);
  if (item !== undefined)
    return truths(items.filter(({ name }) => name.toLowerCase() === item.toLowerCase()));
  const usual = truths(items.filter(({ name }) => state_item.test(name)));
  return usual.length > 0 ? usual : truths(items.filter(({ value }) => /^(?:true|false)$/iu.test(value)));
}

function typesOf(
  { feed, type }: TopicLine,
  items: readonly Item[],
  source: readonly Item[],
): readonly string[] {
  if (feed === 'digital_input') return [source[0]?.value || 'input'];
  const own = type === undefined ? [] : [type];
  return feed === 'ai_detection' ? [...new Set([...own, ...classesOf(items, source)])] : own;
}

/** From items that name classes, from names such as `IsPeople`, and from rules that are called as what they find. */
function classesOf(items: readonly Item[], source: readonly Item[]): readonly string[] {
  const words = [
    ...items.filter(({ name }) => class_item.test(name)).flatMap(({ value }) => value.split(/[\s,;]+/u)),
    ...items.filter(({ value }) => truth(value) === true).map(({ name }) => name.replace(/^is/iu, '')),
    ...source.filter(({ name }) => /^rule(?:name)?$/iu.test(name)).map(({ value }) => value),
  ];
  return words.flatMap((word) => class_words.find(([pattern]) => pattern.test(word))?.[1] ?? []);
}

function itemsOf(message: XmlNode | undefined, part: string): readonly Item[] {
  return all(find(message, part), 'simpleItem').map((item) => ({
    name: attribute(item, 'name')?.trim() ?? '',
    value: attribute(item, 'value')?.trim() ?? '',
  }));
}

/** Topics of one camera that have no meaning here, with how often each came: the configuration may give them one. */
const unread_max = 32;
const unread_chars_max = 100;

export class UnreadTopics {
  readonly all = new Map<string, number>();
  readonly #onChange: () => void;

  /** `onChange`: a topic came for the first time, the tenth, the hundredth and so on. */
  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /** Beyond the limit new topics are not counted: those that came first are shown. */
  note(topic: string): void {
    const name = topic.slice(0, unread_chars_max);
    const count = (this.all.get(name) ?? 0) + 1;
    if (count === 1 && this.all.size >= unread_max) return;
    this.all.set(name, count);
    if (Number.isInteger(Math.log10(count))) this.#onChange();
  }
}
