import { z } from 'zod'
import { setting, text } from '../setting.ts'

/** How a model is reached and written for. */
export const model = {
  /** The name the server knows its model by. @default what it serves */
  servedModel: setting(text, 'The name the server knows its model by', {
    argument: 'NAME',
    usedIn: 'threads',
  }),
  /** Whether log-probabilities of servers are raw or processed by the temperature. @default what each is found to give */
  logprobs: setting(
    () => z.enum(['raw', 'processed']),
    'Whether log-probabilities of servers are raw or processed by the temperature (default: what each is found to give)',
    { argument: 'KIND', usedIn: 'threads' },
  ),
  /** Tokenizer and chat template: a folder, an id, or an opened renderer. @default what the server says it serves */
  model: setting(
    text,
    'Tokenizer and chat template: a model folder or a Hugging Face id (default: what the server says it serves)',
    { argument: 'DIR|ID', usedIn: 'threads' },
  ),
  /** Never fetch tokenizer files or weights from a hub. @default false */
  offline: setting(() => z.boolean(), 'Never fetch tokenizer files or weights from a hub', {
    default: false,
    usedIn: 'threads',
  }),
  /** Where tokenizer files of an id, and weights of `embedded:hf:`, are fetched from. @default 'https://huggingface.co' */
  hub: setting(
    () => z.url(),
    'Where tokenizer files of a Hugging Face id, and weights of embedded:hf:, are fetched from',
    {
      argument: 'URL',
      default: 'https://huggingface.co',
      usedIn: 'threads',
    },
  ),
  /** What computes for a pretrained model inside; `auto` takes a graphics card if there is one. @default 'cpu' */
  device: setting(
    () => z.enum(['cpu', 'gpu', 'auto']),
    'What computes for a pretrained model inside: the processor, or a graphics card by the package webgpu (auto: if there is one)',
    { argument: 'cpu|gpu|auto', default: 'cpu', usedIn: 'threads' },
  ),
  /** The environment variable that holds the server's key. @default 'ESPALIER_POLICY_KEY' */
  keyVariable: setting(text, 'The environment variable that holds the server key', {
    argument: 'NAME',
    default: 'ESPALIER_POLICY_KEY',
    usedIn: 'threads',
  }),
  /** A file to write every sample to, which `replay:FILE` reads. @default none */
  record: setting(text, 'Write every sample to a cassette that replay:FILE reads', {
    argument: 'FILE',
    commands: ['roll', 'eval', 'train', 'gateway', 'fork'],
    usedIn: 'one thread',
  }),
  /** Whether a template may rewrite what was sampled. @default 'preserve' */
  history: setting(
    () => z.enum(['preserve', 'faithful']),
    'Whether a template may rewrite what was sampled',
    { argument: 'preserve|faithful', default: 'preserve', usedIn: 'threads' },
  ),
  /** Values for the chat template. @default none */
  templateVariables: setting(
    () => z.record(z.string(), z.unknown()),
    'Values for the chat template, as a JSON object',
    { argument: 'JSON', default: {}, usedIn: 'threads' },
  ),
  /** How the model writes calls. @default found from its template */
  toolFormat: setting(text, 'How the model writes calls (default: found from its template)', {
    argument: 'NAME',
    usedIn: 'threads',
  }),
  /** How the model writes reasoning. @default found from its template */
  reasoningFormat: setting(
    text,
    'How the model writes reasoning (default: found from its template)',
    { argument: 'NAME', usedIn: 'threads' },
  ),
  /** Whether markers that a model spelled out count as such. @default 'text' */
  markers: setting(
    () => z.enum(['text', 'tokens']),
    'Whether a marker spelled out in ordinary tokens counts, as for servers that parse text, or only the control token',
    { argument: 'text|tokens', default: 'text', usedIn: 'threads' },
  ),
  /** Replaces the sentence in which the template offers tools. @default the template's own */
  toolInstruction: setting(
    () => z.strictObject({ find: text(), replace: z.string() }),
    'Replaces the sentence in which the template offers tools, as JSON {"find","replace"}',
    { argument: 'JSON', usedIn: 'threads' },
  ),
} as const
