/** Notifications of many makers, and the trees that they are read from. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { readEnvelope } from '../../../../drivers/onvif/soap/envelope.ts';
import { notesOf, plainTopic } from '../../../../drivers/onvif/events/topics.ts';
import {
  attribute,
  escapeXml,
  everywhere,
  find,
  textAt,
  type XmlNode,
} from '../../../../drivers/onvif/soap/xml.ts';
import { threadCpu_ms } from '../../../fuzz/engine.ts';
import { forAll } from '../../../support/for-all.ts';

/** 80,000 slashes took 3 s of processor time before; they take a few ms. */
const cpu_max_ms = 1_000;

/** The tree of what is no failure. */
function parseEnvelope(xml: string): XmlNode {
  const reading = readEnvelope(xml);
  if (reading.kind !== 'read') throw new Error(reading.reason);
  return reading.body;
}

const note = (topic: string, items: string, operation = 'Changed', source = '') =>
  parseEnvelope(
    `<e:Envelope xmlns:e="http://www.w3.org/2003/05/soap-envelope"><e:Body><PullMessagesResponse><wsnt:NotificationMessage><wsnt:Topic>${topic}</wsnt:Topic>` +
      `<wsnt:Message><tt:Message PropertyOperation="${operation}"><tt:Source>${source}</tt:Source><tt:Data>${items}</tt:Data></tt:Message></wsnt:Message></wsnt:NotificationMessage></PullMessagesResponse></e:Body></e:Envelope>`,
  );
const item = (name: string, value: string): string => `<tt:SimpleItem Name="${name}" Value="${value}"/>`;
const states = (...args: Parameters<typeof note>) => notesOf(note(...args)).map(({ state }) => state);

it.each([
  ['tns1:VideoSource/MotionAlarm', 'State', 'true'],
  ['tns1:RuleEngine/CellMotionDetector/Motion', 'IsMotion', '1'],
  ['tns1:RuleEngine/MotionRegionDetector/Motion', 'State', '1'],
  ['tns1:RuleEngine/FieldDetector/ObjectsInside/.', 'IsInside', 'true'],
  ['tns1:RuleEngine/MyRuleDetector/PeopleDetect', 'State', 'true'],
  ['tns1:RuleEngine/MyRuleDetector/VehicleDetect', 'State', 'true'],
  ['tns1:RuleEngine/MyRuleDetector/DogCatDetect', 'State', 'true'],
  ['tns1:RuleEngine/MyRuleDetector/FaceDetect', 'State', 'true'],
  ['tns1:RuleEngine/MyRuleDetector/Package', 'State', 'true'],
  // Capture of an RLC-1224A (klaushofrichter/cams).
  ['tns1:RuleEngine/MyRuleDetector/Non_Motor_VehicleDetect', 'State', 'true'],
  ['tns1:RuleEngine/LoiteringDetector/ObjectIsLoitering', 'State', 'true'],
  // Axis: topics of its own event documentation.
  ['tns1:RuleEngine/tnsaxis:VMD3/vmd3_video_1', 'active', '1'],
  ['tnsaxis:CameraApplicationPlatform/VMD/Camera1ProfileANY', 'active', '1'],
  ['tnsaxis:CameraApplicationPlatform/ObjectAnalytics/Device1Scenario1', 'active', '1'],
  ['tnsaxis:CameraApplicationPlatform/LoiteringGuard/Camera1ProfileANY', 'active', '1'],
  ['tns1:Device/tnsaxis:Sensor/PIR', 'state', '1'],
  // Bosch FLEXIDOME IP starlight 8000i: a rule by its name.
  ['tns1:IVA/ObjectInField/Detect_any_object', 'State', 'true'],
  ['tns1:IVA/EnteringField/Entering_field', 'State', 'true'],
  // Tapo C250 (home-assistant/core#127991) and C325WB.
  ['tns1:RuleEngine/LineCrossDetector/LineCross', 'IsLineCross', 'true'],
  ['tns1:RuleEngine/IntrusionDetector/Intrusion', 'IsIntrusion', 'true'],
  // A camera without a name (home-assistant/core#51870).
  ['tns1:RuleEngine/CellMotionDetector/Motion//.', 'IsMotion', 'true'],
  ['tns1:RuleEngine/CellMotionDetector/People', 'IsPeople', 'true'],
  ['tns1:RuleEngine/CellMotionDetector/Intrusion', 'IsIntrusion', 'true'],
  ['tns1:RuleEngine/CellMotionDetector/LineCross', 'IsLineCross', 'true'],
  ['tns1:RuleEngine/CellMotionDetector/TpSmartEvent', 'IsVehicle', 'true'],
  ['tns1:RuleEngine/PeopleDetector/People', 'IsPeople', 'true'],
  ['tns1:RuleEngine/TPSmartEventDetector/TPSmartEvent', 'IsPet', 'true'],
  ['tns1:RuleEngine/ObjectDetection/Object', 'ClassTypes', 'Person'],
  ['tns1:RuleEngine/ObjectDetector/tnsajax:Any', 'ClassTypes', 'Vehicle'],
  ['tns1:UserAlarm/IVA/HumanShapeDetect', 'State', 'true'],
])('reads motion from %s', (topic, name, value) => {
  expect(states(topic, item(name, value))).toEqual(['active']);
  const idle = value === '1' ? '0' : /^[PV]/u.test(value) ? '' : 'false';
  expect(states(topic, item(name, idle))).toEqual(['idle']);
});

it.each([
  ['tns1:RuleEngine/CellMotionDetector/Tamper', 'IsTamper', 'tamper'],
  ['tns1:RuleEngine/TamperDetector/Tamper', 'IsTamper', 'tamper'],
  // Bosch and others report a covered camera so.
  ['tns1:VideoSource/GlobalSceneChange/ImagingService', 'State', 'tamper'],
  ['tns1:RuleEngine/MyRuleDetector/Visitor', 'State', 'doorbell'],
  ['tns1:VideoSource/MotionAlarm', 'State', 'motion'],
])('reads %s as a separate detection', (topic, name, detection) => {
  expect(notesOf(note(topic, item(name, 'true')))).toMatchObject([{ detection, state: 'active' }]);
  expect(notesOf(note(topic, item(name, 'false')))).toMatchObject([{ detection, state: 'idle' }]);
});

it('reads the state of Axis Object Analytics, not its empty list of classes', () => {
  const topic = 'tnsaxis:CameraApplicationPlatform/ObjectAnalytics/Device1Scenario1';
  const data = (active: string): string =>
    item('active', active) + item('objectId', '') + item('classTypes', '');
  expect(states(topic, data('1'))).toEqual(['active']);
  expect(states(topic, data('0'))).toEqual(['idle']);
  expect(states(`${topic}Threshold`, item('active', '1'))).toEqual([]);
});

it('takes a crossed line with the class of what crossed it for a moment', () => {
  const data = item('ObjectId', '2166734') + item('ClassTypes', 'Human');
  expect(states('tns1:RuleEngine/LineDetector/Crossed', data)).toEqual(['pulse']);
});

it('reads no topic that is longer than any known one, and takes no time for one of slashes', () => {
  const topic = 'tns1:VideoSource/MotionAlarm';
  expect(states(`${'a/'.repeat(400)}${topic}`, item('State', 'true'))).toEqual(['active']);
  expect(states(`${'a/'.repeat(600)}${topic}`, item('State', 'true'))).toEqual([]);
  const began_ms = threadCpu_ms();
  expect(plainTopic(`${'/'.repeat(80_000)}x`)).toHaveLength(80_001);
  expect(plainTopic(`Motion${'/'.repeat(80_000)}.`)).toBe('motion');
  expect(threadCpu_ms() - began_ms).toBeLessThan(cpu_max_ms);
});

it('reads a reply with an unescaped ampersand, which costs nothing but that name', () => {
  const body = parseEnvelope(
    '<e:Envelope><e:Body><GetPresetsResponse><Preset token="1"><Name>Gate & Yard</Name></Preset>' +
      '<Preset token="a&b"><Name>Tom &amp; &#74;erry &nbsp;</Name></Preset></GetPresetsResponse></e:Body></e:Envelope>',
  );
  const presets = everywhere(body, 'preset');
  expect(presets.map((preset) => [attribute(preset, 'token'), textAt(preset, 'name')])).toEqual([
    ['1', 'Gate & Yard'],
    ['a&b', 'Tom & Jerry &nbsp;'],
  ]);
});

it('takes a crossed line for a moment without an end', () => {
  expect(states('tns1:RuleEngine/LineDetector/Crossed', item('ObjectId', '7'))).toEqual(['pulse']);
});

it.each([
  ['tns1:VideoSource/tnsaxis:Tampering', item('tampering', '1')],
  ['tns1:Device/tnsaxis:Tampering/ShockDetected', ''],
])('takes tampering that Axis reports by %s for a moment without an end', (topic, data) => {
  const read = notesOf(note(topic, data, '', item('channel', '1')));
  expect(read).toMatchObject([{ detection: 'tamper', state: 'pulse' }]);
});

it('leaves alone what is no motion', () => {
  expect(states('tns1:Device/Trigger/DigitalInput', item('LogicalState', 'true'))).toEqual([]);
  expect(states('tns1:VideoSource/MotionAlarm', item('State', 'perhaps'))).toEqual([]);
});

it('keeps detectors apart by source and rule, and takes a deleted property as gone', () => {
  const topic = 'tns1:VideoSource/MotionAlarm';
  const [a, b] = ['1', '2'].map(
    (source) => notesOf(note(topic, item('State', 'true'), 'Changed', item('Source', source)))[0],
  );
  expect(a?.key).not.toBe(b?.key);
  expect(states(topic, item('State', 'true'), 'Deleted')).toEqual(['gone']);
});

it('reads topics without prefixes and without their end', () => {
  for (const end of ['', '/', '/.', '//.']) {
    expect(plainTopic(` tns1:RuleEngine/tt:Cell/Motion${end} `)).toBe('ruleengine/cell/motion');
  }
});

it('escapes any text so that it comes back as it was', () => {
  const plain = fc
    .string({ unit: 'grapheme', maxLength: 40 })
    .filter((text) => !/[^\u0020-\uD7FF]/u.test(text));
  forAll(plain, (text) => {
    const xml = `<e:Envelope><e:Body><a v="${escapeXml(text)}">${escapeXml(text)}</a></e:Body></e:Envelope>`;
    const a = find(parseEnvelope(xml), 'a');
    expect(attribute(a, 'v')).toBe(text);
    expect(textAt(a) ?? '').toBe(text.trim());
  });
});

it('reads or refuses whatever the reply is, and never throws', () => {
  const piece = fc.oneof(
    fc.constantFrom(
      '<a>',
      '</a>',
      '<e:Envelope>',
      '<e:Body>',
      'xmlns',
      ' xmlns:x="',
      '"',
      '<![CDATA[',
      '&',
      '<!--',
      '__proto__',
      '<__proto__ constructor="1"/>',
    ),
    fc.string({ maxLength: 8 }),
  );
  forAll(fc.array(piece, { maxLength: 60 }), (pieces) => {
    const reading = readEnvelope(pieces.join(''));
    if (reading.kind === 'read') everywhere(reading.body, 'x');
    expect(reading.kind === 'read' ? 'read' : reading.why).toMatch(/^(?:read|malformed)$/u);
  });
  expect({}).not.toHaveProperty('constructor.1');
});
