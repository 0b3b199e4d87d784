/** Who wrote what is in the package and on what terms: Debian's copyright file and a bill of materials (CycloneDX 1.5). */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';

export interface Component {
  readonly name: string;
  readonly version: string;
  /** SPDX. */
  readonly licence: string;
  /** Of the licence, as the library brings it. */
  readonly text: string;
  readonly copyright: readonly string[];
  /** Where it lies; a library with its own directory may be replaced by another build of it. */
  readonly files: string;
  /** That others built and the package ships; stripped of its symbols there. */
  readonly binary?: { readonly file: string; readonly sha256: string; readonly built_by: string } | undefined;
}

const person = z.union([z.string(), z.looseObject({ name: z.string() }).transform(({ name }) => name)]);
const packageFile = z.looseObject({
  name: z.string(),
  version: z.string(),
  license: z.string().optional(),
  author: person.optional(),
});

/** What their own files do not say in SPDX's words; read from the licence texts beside them. */
const known_licences: Readonly<Record<string, string>> = {
  LGPL: 'LGPL-3.0-only',
};

/** Reads one library. Throws when it does not say on what terms it comes: somebody has to look then. */
export async function readComponent(dir: string, files: string): Promise<Component> {
  const about = packageFile.parse(JSON.parse(await readFile(join(dir, 'package.json'), 'utf8')));
  const text = await licenceText(dir);
  const licence = known_licences[about.license ?? ''] ?? about.license ?? guessed(text);
  if (licence === undefined) {
    throw new Error(`${about.name} ${about.version} does not name its licence; look at it and add it here`);
  }
  const claims = copyrightLines(text);
  const copyright =
    claims.length > 0 ? claims : [`the authors of ${about.name}${about.author ? `: ${about.author}` : ''}`];
  return { name: about.name, version: about.version, licence, text, copyright, files };
}

/** The packed names of cities: the library they were taken from, and the data in it, whose authors are to be named. */
export function withData(library: Component): Component {
  return {
    ...library,
    licence: `${library.licence} AND CC-BY-4.0`,
    copyright: [...library.copyright, 'GeoNames (https://www.geonames.org), of the data'],
    text: `The data is of GeoNames (https://www.geonames.org), under the Creative Commons Attribution 4.0
License (https://creativecommons.org/licenses/by/4.0/). It was changed: selected, rounded and packed.

The library it was taken from:

${library.text}`,
  };
}

async function licenceText(dir: string): Promise<string> {
  const files = await readdir(dir);
  const file = files.toSorted().find((name) => /^(licen[cs]e|copying)(\.|-|$)/i.test(name));
  return file === undefined ? '' : readFile(join(dir, file), 'utf8');
}

function guessed(text: string): string | undefined {
  if (/Permission is hereby granted, free of charge/.test(text)) return 'MIT';
  if (/Permission to use, copy, modify, and\/or distribute/.test(text)) return 'ISC';
  return undefined;
}

const claims_max = 5;

function copyrightLines(text: string): readonly string[] {
  const lines = text.split('\n').map((line) => line.trim());
  const claims = lines.filter(
    (line) => /^copyright\s.*(\d{4}|\(c\)|©)/i.test(line) && !/free software foundation/i.test(line),
  );
  return [...new Set(claims)]
    .slice(0, claims_max)
    .map((line) => line.replace(/^copyright\s*(\(c\)|©)?\s*/i, ''));
}

/** Longer terms than this lie beside the copyright file: those of a runtime cover dozens of its parts. */
const text_chars_max = 20_000;

/** The terms that are too long for the copyright file, by the name of their file. */
export function longTerms(components: readonly Component[]): ReadonlyMap<string, string> {
  const long = components.filter((each) => isLong(each));
  return new Map(long.map(({ name, text }) => [termsFile(name), text]));
}

function isLong({ text, licence }: Component): boolean {
  return text.length > text_chars_max && commonLicence(licence) === undefined;
}

function termsFile(name: string): string {
  return `terms-of-${plain(name)}.txt.gz`;
}

/** What stands for the terms of one library. */
function terms(component: Component): string {
  const { name, licence, text } = component;
  if (isLong(component))
    return `The terms of ${name} and of its parts are in ${termsFile(name)} beside this file.`;
  return commonLicence(licence) ?? (withoutCommonTexts(text) || `As published: ${licence}.`);
}

/** A choice of licences brings the text of each; Debian requires references to the texts that it ships. */
function withoutCommonTexts(text: string): string {
  return text.replace(apache_text, commonLicence('Apache-2.0') ?? '');
}
const apache_text = /^[ \t]*Apache License\r?\n[ \t]*Version 2\.0,[^]*?END OF TERMS AND CONDITIONS$/mu;

/** `debian/copyright` in the machine-readable form 1.0. */
export function copyrightFile(own: string, components: readonly Component[]): string {
  const stanzas = components.map((component) => {
    const { name, version, licence, copyright, files } = component;
    return [
      `Files: ${files}`,
      `Comment: ${name} ${version}`,
      `Copyright: ${copyright.join('\n           ')}`,
      `License: ${plain(licence)}-of-${plain(name)}`,
      ...indented(terms(component)),
    ].join('\n');
  });
  const head = [
    'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/',
    'Upstream-Name: kit-connector',
    '',
    'Files: *',
    'Copyright: the authors of kit-connector',
    'License: Expat',
    ...indented(own),
  ].join('\n');
  return `${[head, ...stanzas].join('\n\n')}\n`;
}

function plain(name: string): string {
  return name.replaceAll(/[^a-z0-9.-]+/gi, '-').replace(/^-/, '');
}

/** Debian has these at a common place; a package points there. */
function commonLicence(licence: string): string | undefined {
  const files: Readonly<Record<string, string>> = {
    'Apache-2.0': 'Apache-2.0',
    'LGPL-3.0-only': 'LGPL-3',
  };
  const file = files[licence];
  return file && `On Debian systems the full text is in /usr/share/common-licenses/${file}.`;
}

function indented(text: string): readonly string[] {
  return text
    .trim()
    .split(/\r?\n/)
    .map((line) => (line.trim() === '' ? ' .' : ` ${line.trimEnd()}`));
}

interface About {
  readonly version: string;
  readonly time: Date;
  readonly architecture: string;
}

function purlOf({ name, version }: Component): string {
  return `pkg:npm/${name.replace('@', '%40')}@${version}`;
}

function bomEntry(component: Component, others: readonly Component[]) {
  const reference = purlOf(component);
  return {
    type: 'library',
    'bom-ref': reference,
    name: component.name,
    version: component.version,
    purl: reference,
    licenses: [{ expression: component.licence }],
    properties: [
      ...[component, ...others].map(({ files }) => ({ name: 'kit-connector:files', value: files })),
      ...binaryProperties(component),
    ],
  };
}

function binaryProperties({ binary }: Component): readonly { name: string; value: string }[] {
  if (!binary) return [];
  return [
    {
      name: 'kit-connector:binary',
      value: `${binary.file} sha256:${binary.sha256} before symbols were removed`,
    },
    { name: 'kit-connector:built-by', value: binary.built_by },
  ];
}

/** What is in the package, for tools that look for known flaws. */
export function billOfMaterials(
  { version, time, architecture }: About,
  components: readonly Component[],
): string {
  const references = new Set(components.map(purlOf));
  const listed = Array.from(references, (reference) => {
    // One library may lie in several places; a reference has to be there once.
    const [first, ...others] = components.filter((component) => purlOf(component) === reference);
    return first && bomEntry(first, others);
  });
  const bill = {
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,
    metadata: {
      timestamp: time.toISOString(),
      component: {
        type: 'application',
        'bom-ref': 'kit-connector',
        name: 'kit-connector',
        version,
        purl: `pkg:deb/kit-connector@${version}?arch=${architecture}`,
      },
    },
    components: listed,
  };
  return `${JSON.stringify(bill, null, 2)}\n`;
}
