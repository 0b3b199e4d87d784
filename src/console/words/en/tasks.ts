/** Commands, their forms, and tasks. */
import { number } from '../../units.ts';

/** Words by a name that devices use; others are shown as they are. */
type Names = Readonly<Record<string, string>>;

const command: Names = {
  return_home: 'Return home',
  hold: 'Hold position',
  goto_waypoint: 'Fly to a point',
  set_mode: 'Set mode',
  ptz_move: 'Move camera',
  ptz_preset: 'Go to preset',
  ptz_absolute: 'Go to position',
  ptz_relative: 'Turn by',
  ptz_home: 'Go to home position',
  ptz_stop: 'Stop camera',
  relay: 'Relay output',
  auxiliary: 'Wiper, lamp and other functions',
  set_motion_detection: 'Motion detection',
  set_txpower: 'Set transmit power',
  set_channel: 'Set channel',
  set_mesh_channel: 'Set mesh channel',
  speedtest: 'Speed test',
};

/** Inputs of commands by the names in their schemas. */
const field_names: Readonly<Record<string, string>> = {
  lat: 'Latitude',
  lon: 'Longitude',
  alt_m: 'Altitude',
  height_m: 'Height',
  enabled: 'On',
  dbm: 'Power',
  mode: 'Mode',
  direction: 'Direction',
  speed: 'Speed',
  speed_mps: 'Speed',
  pan: 'Pan',
  tilt: 'Tilt',
  zoom: 'Zoom',
  output: 'Output',
  on: 'On',
  command: 'Function',
};
/** What a result of a command means, by its name; empty: nothing that a person needs. */
const result: Readonly<Record<string, (text: string, value: unknown) => string>> = {
  warning: (text) => `Warning: ${text}.`,
  armed: (_, value) => (value === true ? 'Armed.' : 'Disarmed.'),
  forced: () => 'Forced.',
  flight_mode: (text) => `Mode ${text}.`,
  height_above_home_m: (text) => `${text} above home.`,
  alt_amsl_m: (text) => `${text} above sea level.`,
  alt_datum: () => '',
  acknowledged: (_, value) =>
    value === true ? 'The vehicle confirmed it.' : 'Its effect was seen; the vehicle sent no answer.',
};

export const tasks = {
  command,
  commands: {
    title: 'Commands',
    none: 'This asset has no commands.',
    group: { fly: 'Fly', mission: 'Mission', more: 'More' },
  },
  result,
  lock: {
    readOnly: 'Locked: your key is read-only.',
    noLink: 'Locked: this page has no link to the service.',
    kitOffline: 'Locked: the kit is offline.',
    assetOffline: 'The asset is offline: a command would fail.',
  },
  risk: { medium: 'Medium risk', high: 'High risk', approval: 'Approval required' },
  form: {
    optional: 'optional',
    choose: 'choose',
    chooseOne: 'choose one',
    fillIn: 'fill this in',
    charsMax: (n: number) => `at most ${n} characters`,
    notNumber: 'not a number',
    notWhole: 'must be a whole number',
    min: (n: number) => `at least ${number(n, 6)}`,
    max: (n: number) => `at most ${number(n, 6)}`,
    from: (n: number) => `from ${number(n, 6)}`,
    to: (n: number) => `to ${number(n, 6)}`,
    names: field_names,
    more: (label: string) => `More: ${label}`,
    less: (label: string) => `Less: ${label}`,
    json: 'Payload as JSON',
    jsonNote: 'The kit checks it.',
    notJson: 'not a JSON object',
    kitPosition: "Fill in the kit's position",
    fault: 'Not sent: the inputs need a correction.',
  },
  order: {
    sending: 'Sending',
    accepted: 'Accepted by the service',
    noLink: 'Not sent: this page has no link to the service.',
    unknown: 'Outcome unknown: no answer. Check the tasks before you send it again.',
    refused: (reason: string) => `Not sent: ${reason}`,
    cancelled: 'Not sent: cancelled.',
    expired: 'Not sent: not confirmed in time.',
    noAnswer: 'no answer',
  },
  confirm: {
    question: ({ command, asset }: { command: string; asset: string }) => `${command}: ${asset}?`,
    typeName: 'Or type its name and press Enter:',
  },
  hold: { toConfirm: 'Press and hold', keep: 'Keep holding' },
  task: {
    title: 'Tasks',
    took: (time: string) => `took ${time}`,
    since: (time: string) => `since ${time}`,
    by: (who: string) => `by ${who}`,
    cancel: 'Cancel task',
    noReason: 'no reason given',
    noAnswer: (time: string) => `No answer from the kit for ${time}`,
    waiting: 'Waiting for the kit',
    running: 'Running on the kit',
    done: 'Done',
    removedAsset: 'a removed asset',
  },
};
