/** Checks messages as they lie on the broker against `src/contract/asyncapi.json`, with ajv: a witness that shares no schema code with the connector. */
import { readFileSync } from 'node:fs';
import { Ajv, type ValidateFunction } from 'ajv';
import formats from 'ajv-formats';
import { openBatch, unpackBatch } from '../../src/contract/batch/batch.ts';
import { writeEnvelope } from '../../src/contract/envelope.ts';

interface ApiMessage {
  readonly name: string;
  readonly contentType: string;
  readonly 'x-feed'?: string;
  readonly 'x-empty-payload'?: string;
}
interface ApiChannel {
  readonly address: string;
  readonly messages: Readonly<Record<string, unknown>>;
}
interface ApiDocument {
  readonly channels: Readonly<Record<string, ApiChannel>>;
  readonly components: {
    readonly messages: Readonly<Record<string, ApiMessage & { payload: { $ref: string } }>>;
  };
}

/** What was found to be good. */
interface Checked {
  /** Name of the channel in the document. */
  readonly channel: string;
  /** Messages in the payload: more than one in a batch. */
  readonly messages: number;
  readonly historical: boolean;
}

/** Throws an error that names the topic, the message and every fault. */
export type ContractCheck = (topic: string, payload: Buffer, about: { readonly kit_id: string }) => Checked;

const document_name = 'asyncapi.json';

/** Reads the document and compiles its schemas once. */
export function contractChecker(): ContractCheck {
  const file = new URL('../../src/contract/asyncapi.json', import.meta.url);
  const api = JSON.parse(readFileSync(file, 'utf8')) as ApiDocument;
  const ajv = new Ajv({ strict: false, validateSchema: false, allErrors: true });
  formats.default(ajv);
  ajv.addSchema(api, document_name);
  const routes = Object.entries(api.channels).map(([name, channel]) => route(name, channel, api, ajv));

  const check: ContractCheck = (topic, payload, { kit_id }) => {
    const found = routes.flatMap((each) => each.match(topic) ?? [])[0];
    if (!found) throw new Error(`${topic}: no channel of the contract has this topic`);
    if (found.params['kit_id'] !== kit_id) throw new Error(`${topic}: belongs to another kit than ${kit_id}`);
    const { name, params } = found;
    const candidates = found.messages.filter(
      ({ about }) => (about['x-feed'] ?? params['feed']) === params['feed'],
    );
    if (candidates.length === 0)
      throw new Error(`${topic}: the contract has no feed "${params['feed']}" here`);
    if (payload.length === 0) {
      if (!candidates.some(({ about }) => about['x-empty-payload']))
        throw new Error(`${topic}: the payload is empty`);
      return { channel: name, messages: 1, historical: false };
    }
    if (candidates[0]?.about.contentType === 'application/zlib') {
      return {
        channel: name,
        ...checkBatch(topic, payload, candidates, (item) => check(item.topic, item.payload, { kit_id })),
      };
    }
    const message = parse(topic, payload);
    validate(topic, message, candidates);
    checkIdentity(topic, message, params);
    return { channel: name, messages: 1, historical: false };
  };
  return check;
}

interface Candidate {
  readonly about: ApiMessage;
  readonly isValid: ValidateFunction;
}

function route(name: string, channel: ApiChannel, api: ApiDocument, ajv: Ajv) {
  const pattern = new RegExp(`^${channel.address.replaceAll(/\{(\w+)\}/gu, '(?<$1>[^/]+)')}$`, 'u');
  const messages = Object.keys(channel.messages).map((key): Candidate => {
    const about = api.components.messages[key]!;
    return { about, isValid: ajv.compile({ $ref: `${document_name}${about.payload.$ref}` }) };
  });
  return {
    match: (topic: string) => {
      const groups = pattern.exec(topic)?.groups;
      return groups && { name, params: groups, messages };
    },
  };
}

function parse(topic: string, payload: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(payload));
  } catch (error) {
    throw new Error(`${topic}: the payload is no JSON text`, { cause: error });
  }
}

/** Feeds of one name differ from kind to kind of asset: one of them must fit. */
function validate(topic: string, message: unknown, candidates: readonly Candidate[]): void {
  const faults: string[] = [];
  for (const { about, isValid } of candidates) {
    if (isValid(message)) return;
    for (const { instancePath, message: fault, params } of isValid.errors ?? []) {
      faults.push(`  ${about.name}${instancePath} ${fault} ${JSON.stringify(params)}`);
    }
  }
  throw new Error(`${topic}: breaks the contract\n${faults.join('\n')}\n  in ${JSON.stringify(message)}`);
}

/** Ids that stand in the topic and in the data must agree. */
function checkIdentity(topic: string, message: unknown, params: Readonly<Record<string, string>>): void {
  const { data } = message as { data?: { id?: string; task_id?: string } | null };
  const inTopic = params['task_id'] ?? params['asset_id'];
  const inData = params['task_id'] === undefined ? data?.id : data?.task_id;
  if (inTopic !== undefined && inData !== undefined && inData !== inTopic) {
    throw new Error(`${topic}: the data names ${inData}`);
  }
}

function checkBatch(
  topic: string,
  payload: Buffer,
  candidates: readonly Candidate[],
  checkItem: (item: { topic: string; payload: Buffer }) => void,
): Omit<Checked, 'channel'> {
  const batch = openBatch(payload);
  validate(topic, batch, candidates);
  const items = unpackBatch(payload);
  const base = topic.slice(0, topic.lastIndexOf('/') + 1);
  for (const item of items) {
    if (item.channel === 'batch') throw new Error(`${topic}: a batch in a batch`);
    checkItem({ topic: `${base}${item.channel}`, payload: Buffer.from(writeEnvelope(item, item.data)) });
  }
  return { messages: items.length, historical: batch.historical };
}
