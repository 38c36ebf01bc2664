import type { ModelRenderer } from '@espalier/text/chat'
import type { Call } from '../../base/core/call.ts'
import { readAddress } from '../../engine/policies/policy-uri.ts'
import { readUri } from '../../engine/policies/schemes.ts'
import { ask } from '../../engine/policies/servers/ask.ts'
import { openServer, type Server } from '../../engine/policies/servers/server.ts'
import { asIds, asObject, parseJson } from '../../engine/policies/transport/reading.ts'
import { isUnknownPath } from '../../engine/policies/transport/server-error.ts'
import { type Trial, tryPolicy } from '../../engine/policies/trial.ts'
import { trialPrompts } from '../run/servers/settle-logprobs.ts'
import { openPolicy } from '../settings/open-policy.ts'

/** How a server's tokens compare with a renderer's. */
export interface ServerCheck {
  readonly policy: string
  /** The model that the server says it serves. */
  readonly model: string | undefined
  /** How many texts were tokenized on both sides; 0 if the server has no endpoint for it. */
  readonly compared: number
  /** What differs, in words. */
  readonly differences: readonly string[]
  /** What could not be compared, or does not matter though it differs, in words. */
  readonly notes: readonly string[]
  /** The result of sampling a few tokens; undefined if none were asked for. */
  readonly trial: Trial | undefined
  /** Why no token could be drawn, in words. */
  readonly problem: string | undefined
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

/** Compares a policy's server with a renderer: its tokens, its template, and what it samples. */
export async function checkServer(
  uri: string,
  renderer: ModelRenderer,
  options: ServerCheckOptions,
): Promise<ServerCheck> {
  const sampled = await trySampling(uri, renderer, options)
  return { policy: uri, ...sampled, ...(await compareTokens(uri, renderer, options)) }
}

type Compared = Pick<ServerCheck, 'compared' | 'differences' | 'notes'>

async function compareTokens(
  uri: string,
  renderer: ModelRenderer,
  options: ServerCheckOptions,
): Promise<Compared> {
  const { name: scheme } = readUri(uri)
  const url = readAddress(uri).address
  const tokenization = Object.hasOwn(tokenizations, scheme) ? tokenizations[scheme] : undefined
  const nothing = { compared: 0, differences: [] }
  if (!tokenization) {
    return { ...nothing, notes: [`${scheme}: has no tokenizer that could be asked`] }
  }
  const { key } = options
  await using server = openServer(url, { ...(key !== undefined && { key }), deadlineSeconds: 30 })
  const tokenize = (text: string) =>
    askTokens(server, tokenization.body(text, options.servedModel), options)
  if ((await tokenize('a')) === undefined) {
    return {
      ...nothing,
      notes: [`${url} has no endpoint to tokenize, so tokens were not compared`],
    }
  }
  const texts = sampleTexts(renderer)
  const found: Difference[] = []
  for (const text of texts) found.push(...(await compareText(renderer, tokenize, text)))
  const { template } = tokenization
  const notes = template ? await compareTemplate(server, renderer, { template, ...options }) : []
  return {
    compared: texts.length,
    differences: found.filter(({ matters }) => matters).map(({ words }) => words),
    notes: [...notes, ...found.filter(({ matters }) => !matters).map(({ words }) => words)],
  }
}

/** Asks a server what it serves, and draws a few tokens from it. */
async function trySampling(
  uri: string,
  renderer: ModelRenderer,
  { signal, key, servedModel }: ServerCheckOptions,
): Promise<Pick<ServerCheck, 'model' | 'trial' | 'problem'>> {
  await using policy = await openPolicy(uri, {
    retries: false,
    thread: false,
    deadlineSeconds: 60,
    ...(key !== undefined && { key }),
    ...(servedModel !== undefined && { servedModel }),
  })
  const model = (await policy.describe?.({ signal }))?.model
  if (!policy.capabilities.ids) return { model, trial: undefined, problem: undefined }
  try {
    const prompts = [renderer.render([opening], []), ...trialPrompts(renderer)]
    return { model, trial: await tryPolicy(policy, prompts, { signal }), problem: undefined }
  } catch (error) {
    signal.throwIfAborted()
    const problem = error instanceof Error ? error.message : String(error)
    return { model, trial: undefined, problem }
  }
}

const opening = { role: 'user', content: 'Is it 3 °C or 4,5 °C in Köln?' } as const

async function askTokens(
  server: Server,
  body: object,
  call: Call,
): Promise<Int32Array | undefined> {
  for (const path of ['/tokenize', '/v1/tokenize']) {
    const where = `POST ${server.url}${path}`
    try {
      const answer = await ask(server, { path, body: JSON.stringify(body) }, call)
      const { tokens } = asObject(parseJson(answer, where), where, 'the answer')
      return asIds(tokens, where, 'tokens')
    } catch (error) {
      if (!isUnknownPath(error)) throw error
    }
  }
  return undefined
}

/** Texts that reveal a wrong vocabulary, a wrong normalizer and missing control tokens. */
function sampleTexts({ chat, stopIds, tokenizer }: ModelRenderer): readonly string[] {
  return [
    'The quick brown fox: 12345 + 67890 = 80235.',
    '  two  spaces,\n\n\ttabs\tand\r\nlines  ',
    'naïve 订单 🎉 e\u0301 ﬁ',
    ...stopIds.map(id => tokenizer.tokenOf(id) ?? '').filter(text => text !== ''),
    chat.render({ messages: [opening], tools: [], opensTurn: true }).text,
  ]
}

/** A text that the two sides tokenize differently; some differences do not matter for a server that is sent ids. */
interface Difference {
  readonly words: string
  readonly matters: boolean
}

async function compareText(
  { tokenizer }: ModelRenderer,
  tokenize: (text: string) => Promise<Int32Array | undefined>,
  text: string,
): Promise<readonly Difference[]> {
  const ours = tokenizer.encode(text)
  const onServer = (await tokenize(text)) ?? new Int32Array()
  const at = ours.findIndex((id, index) => id !== onServer[index])
  if (at < 0 && ours.length === onServer.length) return []
  const place = at < 0 ? ours.length : at
  const shown = JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text)
  const words = `${shown} is ${excerpt(ours, place)} here and ${excerpt(onServer, place)} on the server`
  // If the server's ids equal ours for the normalised text, it only normalises, which does not matter for ids.
  const normalised = tokenizer.encode(text.normalize('NFC'))
  const isNormalised = onServer.length === normalised.length && onServer.every(isAt(normalised))
  return isNormalised
    ? [{ words: `${words}: it normalises text, which ids do not need`, matters: false }]
    : [{ words, matters: true }]
}

const isAt =
  (ids: Int32Array) =>
  (id: number, index: number): boolean =>
    ids[index] === id

/** The ids around the first place where two tokenizations part. */
function excerpt(ids: Int32Array, place: number): string {
  const from = Math.max(0, place - 2)
  const shown = [...ids.subarray(from, place + 4)].join(', ')
  return `[${from > 0 ? '…, ' : ''}${shown}${ids.length > place + 4 ? ', …' : ''}]`
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
