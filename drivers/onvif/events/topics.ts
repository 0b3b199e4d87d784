/** Reads motion from notifications of cameras, whose formats differ by maker. Pure. */
import { all, attribute, everywhere, find, textAt, truth, type XmlNode } from '../soap/xml.ts';

/** State of one detector in one notification. */
export interface MotionNote {
  /** Topic, source and rule: two detectors never share it. */
  readonly key: string;
  /** `pulse`: an event without an end event. */
  readonly state: 'active' | 'idle' | 'gone' | 'pulse';
}

/** Ends of topics, without prefixes, lower case. */
const motion_topics: readonly string[] = [
  'videosource/motionalarm',
  'videoanalytics/motiondetection',
  'ruleengine/motiondetector/motion',
  'ruleengine/motionregiondetector/motion',
  'ruleengine/fielddetector/objectsinside',
  'ruleengine/linedetector/crossed',
  'ruleengine/peopledetector/people',
  'ruleengine/tpsmarteventdetector/tpsmartevent',
  'ruleengine/objectdetection/object',
  'useralarm/iva/humanshapedetect',
  ...['motion', 'people', 'intrusion', 'linecross', 'tamper', 'tpsmartevent'].map(
    (name) => `ruleengine/cellmotiondetector/${name}`,
  ),
  ...['peopledetect', 'vehicledetect', 'dogcatdetect', 'facedetect', 'package', 'visitor'].map(
    (name) => `ruleengine/myruledetector/${name}`,
  ),
];
/** Names of items whose value is the motion state. */
const state_item = /^(?:is[a-z]+|state|value|active|motion)$/iu;
/** Vendors' topics whose items are recognised instead of their ends. */
const vendor_topic = /(?:^|\/)tnsajax:|cameraapplicationplatform\/vmd\//iu;
const messages_max = 256;

/** All notifications of a PullMessagesResponse or a Notify, the first ones when there are too many. */
export function notesOf(body: XmlNode): readonly MotionNote[] {
  return everywhere(body, 'notificationMessage')
    .slice(0, messages_max)
    .map(noteOf)
    .filter((note) => note !== undefined);
}

function noteOf(notification: XmlNode): MotionNote | undefined {
  const reported = textAt(notification, 'topic') ?? '';
  const topic = plainTopic(reported);
  const isKnown = motion_topics.some((end) => topic === end || topic.endsWith(`/${end}`));
  if (!isKnown && !vendor_topic.test(reported)) return undefined;
  const message = find(notification, 'message', 'message') ?? find(notification, 'message');
  const key = [topic, ...itemsOf(message, 'source'), ...itemsOf(message, 'key')].join('|').slice(0, 512);
  if (attribute(message, 'propertyOperation')?.toLowerCase() === 'deleted') return { key, state: 'gone' };
  const state = stateOf(message, topic);
  return state && { key, state };
}

/** `tns1:RuleEngine/tt:CellMotionDetector/Motion/.` is `ruleengine/cellmotiondetector/motion`. */
export function plainTopic(topic: string): string {
  return topic
    .trim()
    .replace(/\/\.?$/u, '')
    .split('/')
    .map((part) => part.slice(part.indexOf(':') + 1))
    .join('/')
    .toLowerCase();
}

function stateOf(message: XmlNode | undefined, topic: string): MotionNote['state'] | undefined {
  const items = all(find(message, 'data'), 'simpleItem');
  const classes = items.find((item) => /^classtypes?$/iu.test(attribute(item, 'name') ?? ''));
  if (classes) return attribute(classes, 'value')?.trim() ? 'active' : 'idle';
  const values = items
    .filter((item) => state_item.test(attribute(item, 'name') ?? ''))
    .map((item) => truth(attribute(item, 'value')?.trim()))
    .filter((value) => value !== undefined);
  if (values.length > 0) return values.includes(true) ? 'active' : 'idle';
  // A crossed line is an event without a state: it carries the object only.
  return topic.endsWith('linedetector/crossed') ? 'pulse' : undefined;
}

function itemsOf(message: XmlNode | undefined, part: string): readonly string[] {
  return all(find(message, part), 'simpleItem')
    .map((item) => `${attribute(item, 'name') ?? ''}=${attribute(item, 'value') ?? ''}`)
    .toSorted();
}
