import type { ModelRenderer } from '../chat/renderer.ts'
import type { Call } from '../core/call.ts'
import { ask } from '../policies/servers/ask.ts'
import { openServer, type Server } from '../policies/servers/server.ts'
import { asIds, asObject, parseJson } from '../policies/transport/reading.ts'
import { isUnknownPath } from '../policies/transport/server-error.ts'
import { openPolicy } from '../settings/open-policy.ts'

/** How a server's tokens compare with a renderer's. */
export interface ServerCheck {
  readonly policy: string
  /** The model that the server says it serves. */
  readonly model: string | undefined
  /** How many texts were tokenized on both sides; 0 where the server has no endpoint for it. */
  readonly compared: number
  /** What differs, in words. */
  readonly differences: readonly string[]
  /** What could not be compared, or does not matter though it differs, in words. */
  readonly notes: readonly string[]
}

/** How a server is asked. */
export interface ServerCheckOptions extends Call {
  readonly key?: string
  readonly servedModel?: string
}

/** How a kind of server tokenizes a text, and under which name it gives the ids. */
interface Tokenization {
  body(text: string, model: string | undefined): object
  /** Its chat template, if it tells. */
  readonly template?: string
}

const tokenizations: Readonly<Record<string, Tokenization>> = {
  sglang: { body: prompt => ({ prompt, add_special_tokens: false }) },
  vllm: {
    body: (prompt, model) => ({
      prompt,
      add_special_tokens: false,
      ...(model !== undefined && { model }),
    }),
  },
  'llama-cpp': {
    body: content => ({ content, add_special: false, parse_special: true }),
    template: '/props',
  },
}

/** Compares the tokens and the template of a policy's server with those of a renderer. */
export async function checkServer(
  uri: string,
  renderer: ModelRenderer,
  options: ServerCheckOptions,
): Promise<ServerCheck> {
  const [scheme = '', url = ''] = splitOnce(uri, ':')
  const tokenization = Object.hasOwn(tokenizations, scheme) ? tokenizations[scheme] : undefined
  const model = await describeModel(uri, options)
  const nothing = { policy: uri, model, compared: 0, differences: [] }
  if (!tokenization) {
    return { ...nothing, notes: [`${scheme}: has no tokenizer that could be asked`] }
  }
  const { key } = options
  await using server = openServer(url, { ...(key !== undefined && { key }), deadlineSeconds: 30 })
  const tokenize = (text: string) =>
    askTokens(server, tokenization.body(text, options.servedModel), options)
  if ((await tokenize('a')) === undefined) {
    return { ...nothing, notes: [`${url} has no endpoint /tokenize, so tokens were not compared`] }
  }
  const texts = sampleTexts(renderer)
  const differences: string[] = []
  for (const text of texts) differences.push(...(await compareText(renderer, tokenize, text)))
  const { template } = tokenization
  const notes = template ? await compareTemplate(server, renderer, { template, ...options }) : []
  return { policy: uri, model, compared: texts.length, differences, notes }
}

function splitOnce(text: string, separator: string): readonly string[] {
  const at = text.indexOf(separator)
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)]
}

async function describeModel(
  uri: string,
  { signal, key, servedModel }: ServerCheckOptions,
): Promise<string | undefined> {
  const policy = await openPolicy(uri, {
    retries: false,
    ...(key !== undefined && { key }),
    ...(servedModel !== undefined && { servedModel }),
  })
  try {
    return (await policy.describe?.({ signal }))?.model
  } finally {
    await policy[Symbol.asyncDispose]()
  }
}

async function askTokens(
  server: Server,
  body: object,
  call: Call,
): Promise<Int32Array | undefined> {
  const where = `POST ${server.url}/tokenize`
  try {
    const answer = await ask(server, { path: '/tokenize', body: JSON.stringify(body) }, call)
    const { tokens } = asObject(parseJson(answer, where), where, 'the answer')
    return asIds(tokens, where, 'tokens')
  } catch (error) {
    if (isUnknownPath(error)) return undefined
    throw error
  }
}

/** Texts that show a wrong vocabulary, a wrong normalizer and control tokens that are none. */
function sampleTexts({ chat, stopIds, tokenizer }: ModelRenderer): readonly string[] {
  const opening = { role: 'user', content: 'Is it 3 °C or 4,5 °C in Köln?' } as const
  return [
    'The quick brown fox: 12345 + 67890 = 80235.',
    '  two  spaces,\n\n\ttabs\tand\r\nlines  ',
    'naïve 订单 🎉 e\u0301 ﬁ',
    ...stopIds.map(id => tokenizer.tokenOf(id) ?? '').filter(text => text !== ''),
    chat.render({ messages: [opening], tools: [], opensTurn: true }).text,
  ]
}

async function compareText(
  { tokenizer }: ModelRenderer,
  tokenize: (text: string) => Promise<Int32Array | undefined>,
  text: string,
): Promise<readonly string[]> {
  const ours = tokenizer.encode(text)
  const theirs = (await tokenize(text)) ?? new Int32Array()
  if (ours.length === theirs.length && ours.every((id, index) => id === theirs[index])) return []
  const shown = JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text)
  return [`${shown} is ${excerpt(ours)} here and ${excerpt(theirs)} on the server`]
}

function excerpt(ids: Int32Array): string {
  return `[${ids.subarray(0, 8).join(', ')}${ids.length > 8 ? ', …' : ''}]`
}

async function compareTemplate(
  server: Server,
  { chat }: ModelRenderer,
  { template: path, signal }: Call & { readonly template: string },
): Promise<readonly string[]> {
  const where = `GET ${server.url}${path}`
  const answer = await ask(server, { path }, { signal })
  const { chat_template: template } = asObject(parseJson(answer, where), where, 'the answer')
  if (typeof template !== 'string' || template.trim() === chat.source.trim()) return []
  return ['the server has another chat template; it is not used, since prompts are sent as tokens']
}
