/** The manual pages: the command's from its own command line, the configuration's from its schema. */
import type { Argument, Command, Option } from 'commander';
import { z } from 'zod';

const shown = z.looseObject({
  description: z.string().optional(),
  default: z.unknown().optional(),
  properties: z.record(z.string(), z.unknown()).optional(),
  items: z.unknown().optional(),
  required: z.array(z.string()).default([]),
});

interface Edition {
  readonly version: string;
  readonly time: Date;
}

/** kit-connector(1). */
export function commandPage(program: Command, edition: Edition): string {
  return page('KIT-CONNECTOR', 1, edition, [
    ...section('NAME', ['kit\\-connector \\- connects the devices of a field kit to the cloud']),
    ...section('SYNOPSIS', ['.B kit\\-connector', '.I command', '[\\fIoptions\\fR]']),
    ...section('DESCRIPTION', [roff(program.description())]),
    ...section('COMMANDS', leaves(program).flatMap(commandLines)),
    ...section(
      'FILES',
      files.flatMap(([path, what]) => ['.TP', `.I ${roff(path)}`, roff(what)]),
    ),
    ...section(
      'EXIT STATUS',
      exits.flatMap(([code, what]) => ['.TP', `.B ${code}`, what]),
    ),
    ...section('SEE ALSO', ['.BR kit\\-connector.yaml (5),', '.BR systemctl (1),', '.BR journalctl (1)']),
  ]);
}

const files = [
  ['/etc/kit-connector/config.yaml', 'The configuration, see kit-connector.yaml(5).'],
  [
    '/etc/credstore/kit-connector.mqtt-password',
    'Password at the broker; mqtt-ca, mqtt-cert and mqtt-key likewise.',
  ],
  ['/var/lib/kit-connector/buffer.db', 'Messages that wait for delivery.'],
  ['/run/kit-connector/control.sock', 'Where the running service answers the other commands.'],
] as const;

const exits = [
  [0, 'Done.'],
  [1, 'Failed; the reason was printed.'],
  [64, 'The command line is wrong.'],
  [69, 'No service answers.'],
  [78, 'The configuration is wrong; every fault was printed with its line.'],
] as const;

/** kit-connector.yaml(5), from the JSON Schema of the file. */
export function configPage(schema: unknown, edition: Edition): string {
  return page('KIT-CONNECTOR.YAML', 5, edition, [
    ...section('NAME', ['kit\\-connector.yaml \\- configuration of kit\\-connector']),
    ...section('DESCRIPTION', [
      'One YAML file,',
      '.IR /etc/kit\\-connector/config.yaml .',
      '.RB \\(dq "kit\\-connector check" \\(dq',
      'names every fault in it. These are its keys:',
    ]),
    ...section('KEYS', keyLines(schema, '')),
    ...section('SEE ALSO', ['.BR kit\\-connector (1)']),
  ]);
}

/** The options of drivers are long and their own; their sections stop the walk at this depth. */
const depth_max = 3;

function keyLines(schema: unknown, path: string): readonly string[] {
  const { properties = {}, required } = shown.parse(schema);
  if (path.split('.').length > depth_max) return [];
  return Object.entries(properties).flatMap(([key, value]) => {
    const name = path ? `${path}.${key}` : key;
    const about = shown.parse(value);
    const facts = [
      about.description ? sentence(about.description) : '',
      required.includes(key) ? 'Required.' : '',
      isSimple(about.default) ? `Default: ${JSON.stringify(about.default)}.` : '',
    ].filter(Boolean);
    const inner = about.properties ? value : about.items;
    const deeper =
      typeof inner === 'object' && inner !== null
        ? keyLines(inner, about.properties ? name : `${name}[]`)
        : [];
    return ['.TP', `.B ${roff(name)}`, roff(facts.join(' ')) || '\\&'].concat(deeper);
  });
}

function isSimple(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}

interface Leaf {
  readonly words: string;
  readonly command: Command;
}

/** The commands that do something, with the words that lead to them. */
export function leaves(command: Command, before = ''): readonly Leaf[] {
  return command.commands.flatMap((each) => {
    const words = `${before}${each.name()}`;
    return each.commands.length > 0 ? leaves(each, `${words} `) : [{ words, command: each }];
  });
}

function commandLines({ words, command }: Leaf): readonly string[] {
  const operands = command.registeredArguments.map((argument: Argument) =>
    argument.required ? `<${argument.name()}>` : `[${argument.name()}${argument.variadic ? '...' : ''}]`,
  );
  return [
    '.SS',
    `.B ${roff([words, ...operands].join(' '))}`,
    '.br',
    roff(sentence(command.description())),
    ...command.options.flatMap((option: Option) => [
      '.TP',
      `.B ${roff(option.flags)}`,
      roff(sentence(option.description)),
    ]),
  ];
}

/** Of a description, which is a few words; what begins with an address or a name of the file stays as it is. */
function sentence(text: string): string {
  const isWord = /^[a-z]+[ ,]/.test(text);
  return `${isWord ? text.charAt(0).toUpperCase() : text.charAt(0)}${text.slice(1)}.`;
}

function section(title: string, lines: readonly string[]): readonly string[] {
  return [`.SH ${title}`, ...lines];
}

function page(title: string, chapter: number, { version, time }: Edition, lines: readonly string[]): string {
  const date = time.toISOString().slice(0, 10);
  return `${[`.TH ${title} ${chapter} "${date}" "kit-connector ${version}"`, ...lines].join('\n')}\n`;
}

/** Text that roff prints as it is. */
function roff(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll('\n', ' ')
    .replace(/^([.'])/, '\\&$1');
}
