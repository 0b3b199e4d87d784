/** Reads motion, tampering and doorbells from notifications of cameras, whose formats differ by maker. Pure. */
import { all, attribute, everywhere, find, textAt, truth, type XmlNode } from '../soap/xml.ts';

export type Detection = 'motion' | 'tamper' | 'doorbell';

/** State of one detector in one notification. */
export interface DetectorNote {
  /** Topic, source and rule: two detectors never share it. */
  readonly key: string;
  /** `pulse`: an event without an end event. */
  readonly state: 'active' | 'idle' | 'gone' | 'pulse';
}

export interface DetectionNote extends DetectorNote {
  readonly detection: Detection;
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
  'ruleengine/loiteringdetector/objectisloitering',
  'ruleengine/linecrossdetector/linecross',
  'ruleengine/intrusiondetector/intrusion',
  'device/sensor/pir',
  ...['motion', 'people', 'intrusion', 'linecross', 'tpsmartevent'].map(
    (name) => `ruleengine/cellmotiondetector/${name}`,
  ),
  ...[
    'peopledetect',
    'vehicledetect',
    'non_motor_vehicledetect',
    'dogcatdetect',
    'facedetect',
    'package',
  ].map((name) => `ruleengine/myruledetector/${name}`),
];
const tamper_topics: readonly string[] = [
  'ruleengine/cellmotiondetector/tamper',
  'ruleengine/tamperdetector/tamper',
  'videosource/tamper',
  'videosource/tampering',
  'device/tampering/shockdetected',
  ...['imagingservice', 'analyticsservice', 'recordingservice'].map(
    (name) => `videosource/globalscenechange/${name}`,
  ),
];
const doorbell_topics: readonly string[] = ['ruleengine/myruledetector/visitor'];
/** Names of items whose value is the motion state. */
const state_item = /^(?:is[a-z]+|state|value|active|motion)$/iu;
/** Vendors' topics whose ends vary: Ajax, rules of Bosch by their names, and the analytics of Axis, whose scenarios are numbered. */
const vendor_topic =
  /(?:^|\/)tnsajax:|^\s*tns1:iva\/(?:objectinfield|enteringfield|leavingfield|crossingline|loitering)\/|cameraapplicationplatform\/(?:vmd|objectanalytics|loiteringguard|loiteringdetector|fenceguard|motionguard)\/|ruleengine\/(?:tnsaxis:)?vmd3\//iu;
/** Events of Axis without a state. */
const stateless_topic = /^(?:videosource\/tampering|device\/tampering\/shockdetected)$/u;
/** Of Axis: not a state but measurements. */
const no_state_topic = /\/xinternal_data$|threshold$/iu;
const messages_max = 256;
/** Topics have some 60 characters. A longer one is none that is known. */
const topic_chars_max = 1_024;

/** All notifications of a PullMessagesResponse or a Notify, the first ones when there are too many. */
export function notesOf(body: XmlNode): readonly DetectionNote[] {
  return everywhere(body, 'notificationMessage')
    .slice(0, messages_max)
    .map(noteOf)
    .filter((note) => note !== undefined);
}

function noteOf(notification: XmlNode): DetectionNote | undefined {
  const reported = textAt(notification, 'topic') ?? '';
  if (reported.length > topic_chars_max) return undefined;
  const topic = plainTopic(reported);
  const detection = detectionOf(topic, reported);
  if (detection === undefined) return undefined;
  const message = find(notification, 'message', 'message') ?? find(notification, 'message');
  const key = [topic, ...itemsOf(message, 'source'), ...itemsOf(message, 'key')].join('|').slice(0, 512);
  if (attribute(message, 'propertyOperation')?.toLowerCase() === 'deleted')
    return { detection, key, state: 'gone' };
  const state = stateOf(message, topic);
  return state && { detection, key, state };
}

function detectionOf(topic: string, reported: string): Detection | undefined {
  const isOneOf = (ends: readonly string[]): boolean =>
    ends.some((end) => topic === end || topic.endsWith(`/${end}`));
  if (isOneOf(motion_topics)) return 'motion';
  if (isOneOf(tamper_topics)) return 'tamper';
  if (isOneOf(doorbell_topics)) return 'doorbell';
  return vendor_topic.test(reported) && !no_state_topic.test(reported) ? 'motion' : undefined;
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

function stateOf(message: XmlNode | undefined, topic: string): DetectorNote['state'] | undefined {
  const items = all(find(message, 'data'), 'simpleItem');
  const values = items
    .filter((item) => state_item.test(attribute(item, 'name') ?? ''))
    .map((item) => truth(attribute(item, 'value')?.trim()))
    .filter((value) => value !== undefined);
  if (values.length > 0) return values.includes(true) ? 'active' : 'idle';
  // A crossed line is an event without a state: it carries the object only.
  if (topic.endsWith('linedetector/crossed') || stateless_topic.test(topic)) return 'pulse';
  const classes = items.find((item) => /^classtypes?$/iu.test(attribute(item, 'name') ?? ''));
  return classes && (attribute(classes, 'value')?.trim() ? 'active' : 'idle');
}

function itemsOf(message: XmlNode | undefined, part: string): readonly string[] {
  return all(find(message, part), 'simpleItem')
    .map((item) => `${attribute(item, 'name') ?? ''}=${attribute(item, 'value') ?? ''}`)
    .toSorted();
}
