/** The manual pages: the command's from its own command line, the configuration's from its schema. */
import type { Argument, Command, Option } from 'commander';
import { z } from 'zod';

const shown = z.looseObject({
  description: z.string().optional(),
  default: z.unknown().optional(),
  properties: z.record(z.string(), z.unknown()).optional(),
  items: z.unknown().optional(),
  required: z.array(z.string()).default([]),
  enum: z.array(z.unknown()).optional(),
  const: z.unknown().optional(),
  oneOf: z.array(z.unknown()).optional(),
  anyOf: z.array(z.unknown()).optional(),
  allOf: z.array(z.unknown()).optional(),
});

/** `if: the driver is X, then: its options are ...` */
const driverRule = z.record(z.string(), z.unknown());

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
    ...section('OPTIONS', program.createHelp().visibleOptions(program).flatMap(optionLines)),
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
    '/etc/kit-connector-service/service.yaml',
    'That of the service for many kits, see kit-connector.yaml(5).',
  ],
  [
    '/etc/credstore/kit-connector.mqtt-password',
    'Password at the broker; mqtt-ca, also mqtt-cert and mqtt-key.',
  ],
  ['/var/lib/kit-connector/buffer.db', 'Messages that wait for delivery.'],
  ['/run/kit-connector/control.sock', 'Where the running service answers the other commands.'],
] as const;

const exits = [
  [0, 'Done.'],
  [1, 'Failed; the reason was printed. Of doctor: something deserves a look.'],
  [2, 'Of doctor: something is broken.'],
  [64, 'The command line is wrong.'],
  [69, 'No service answers.'],
  [78, 'The configuration is wrong; every fault was printed with its line.'],
] as const;

/** Of the two files that the page describes. */
export interface Schemas {
  /** Of the daemon's. */
  readonly kit: unknown;
  /** Of the service for many kits. */
  readonly service: unknown;
}

/** kit-connector.yaml(5), from the JSON Schemas of the files. */
export function configPage({ kit, service }: Schemas, edition: Edition): string {
  return page('KIT-CONNECTOR.YAML', 5, edition, [
    ...section('NAME', ['kit\\-connector.yaml \\- configuration of kit\\-connector']),
    ...section('DESCRIPTION', [
      'One YAML file,',
      '.IR /etc/kit\\-connector/config.yaml .',
      '.RB \\(dq "kit\\-connector check" \\(dq',
      'names every fault in it. These are its keys; those of the service for many kits,',
      '.IR /etc/kit\\-connector\\-service/service.yaml ,',
      'follow under KEYS OF service.yaml.',
    ]),
    ...section('KEYS', keyLines(kit, '')),
    ...driverSections(kit),
    ...section('KEYS OF service.yaml', keyLines(service, '')),
    ...section('SEE ALSO', ['.BR kit\\-connector (1)']),
  ]);
}

/** Options of drivers lie deep in lists of devices. */
const depth_max = 6;

/** A key of the file: its description, and what may lie below it. */
interface Key {
  readonly name: string;
  readonly schemas: readonly unknown[];
  readonly isRequired: boolean;
}

function keyLines(schema: unknown, path: string): readonly string[] {
  if (path.split('.').length > depth_max) return [];
  return keysOf(schema).flatMap(({ name: key, schemas, isRequired }) => {
    const name = path ? `${path}.${key}` : key;
    const all = schemas.map((each) => shown.parse(each));
    const described = all.find(({ description }) => description !== undefined)?.description;
    const [usual, ...others] = new Set(all.map((each) => each.default));
    const facts = [
      described === undefined ? '' : sentence(described),
      choiceText(all),
      isRequired ? 'Required.' : '',
      // Where kinds of a thing differ, there is no one default.
      isSimple(usual) && others.length === 0 ? `Default: ${JSON.stringify(usual)}.` : '',
    ].filter(Boolean);
    const deeper = schemas.flatMap((each) => {
      const { items } = shown.parse(each);
      return items === undefined ? keyLines(each, name) : keyLines(items, `${name}[]`);
    });
    // A section without a description needs no paragraph.
    if (facts.length === 0 && deeper.length > 0) return deeper;
    return ['.TP', `.B ${roff(name)}`, roff(facts.join(' ')) || '\\&'].concat(deeper);
  });
}

/** The keys of an object, of all its variants together: a key that only some variants have, or require, is optional. */
function keysOf(schema: unknown): readonly Key[] {
  const { oneOf = [], anyOf = [] } = shown.parse(schema);
  const variants = [schema, ...oneOf, ...anyOf]
    .map((each) => shown.parse(each))
    .filter(({ properties }) => properties !== undefined);
  const names = new Set(variants.flatMap(({ properties = {} }) => Object.keys(properties)));
  return Array.from(names, (name) => ({
    name,
    schemas: variants.flatMap(({ properties = {} }) => (name in properties ? [properties[name]] : [])),
    isRequired: variants.every(({ required }) => required.includes(name)),
  }));
}

function choiceText(schemas: readonly z.output<typeof shown>[]): string {
  const choices = schemas.flatMap(({ enum: of = [], const: only }) => (only === undefined ? of : [only]));
  const words = new Set(choices.map((each) => JSON.stringify(each)));
  return words.size > 1 ? `One of ${[...words].join(', ')}.` : '';
}

/** A section for each driver: what can stand in its `options`. */
function driverSections(schema: unknown): readonly string[] {
  const { properties = {} } = shown.parse(schema);
  const { items } = shown.parse(properties['drivers'] ?? {});
  const { allOf = [] } = shown.parse(items ?? {});
  return allOf.flatMap((each) => {
    const rule = driverRule.parse(each);
    const { driver } = shown.parse(rule['if'] ?? {}).properties ?? {};
    const { options } = shown.parse(rule['then'] ?? {}).properties ?? {};
    const name = shown.parse(driver ?? {}).const;
    const lines = keyLines(options ?? {}, 'options');
    return typeof name === 'string' && lines.length > 0 ? section(`DRIVER ${name}`, lines) : [];
  });
}

function isSimple(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}

interface Leaf {
  readonly words: string;
  readonly command: Command;
  /** What it does, after what the words before it are about. */
  readonly about: string;
}

/** The commands that do something, with the words that lead to them. */
export function leaves(command: Command, before = '', group = ''): readonly Leaf[] {
  return command.commands.flatMap((each) => {
    const words = `${before}${each.name()}`;
    const about = `${group}${each.description()}`;
    return each.commands.length > 0
      ? leaves(each, `${words} `, `${each.description()}: `)
      : [{ words, command: each, about }];
  });
}

function commandLines({ words, command, about }: Leaf): readonly string[] {
  const operands = command.registeredArguments.map((argument: Argument) =>
    argument.required ? `<${argument.name()}>` : `[${argument.name()}${argument.variadic ? '...' : ''}]`,
  );
  return [
    '.SS',
    `.B ${roff([words, ...operands].join(' '))}`,
    '.br',
    roff(sentence(about)),
    ...command.options.flatMap(optionLines),
  ];
}

function optionLines(option: Option): readonly string[] {
  const usual = isWorthSaying(option) ? `Default: ${String(option.defaultValue)}.` : '';
  const facts = [sentence(option.description), usual].filter(Boolean);
  return ['.TP', `.B ${roff(option.flags)}`, roff(facts.join(' '))];
}

/** Of an option that takes a value; an empty list is none. */
function isWorthSaying({ required, defaultValue }: Option): boolean {
  return required && defaultValue !== undefined && String(defaultValue) !== '';
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
