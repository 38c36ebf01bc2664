import { type Message, textOf } from '@espalier/text'
import type { CondenseCall, Condenser } from '../../base/core/condenser.ts'
import type { Speaker, Speech } from '../../base/core/speaker.ts'
import { type BlockOptions, blockCondenser } from './block-condenser.ts'
import { codePoints } from './chunk.ts'
import type { ChunkCondenser, ChunkRequest, CondensedChunk } from './condense-chunks.ts'
import { type CondensePrompts, defaultPrompts, fillPrompt } from './prompts.ts'

/** Who condenses, to which length, and how often it is asked. */
export interface ModelOptions {
  /** `self`: the policy, on paths of its own that are trained with the trajectory. */
  readonly speaker: Speaker | 'self'
  /** How many times shorter a chunk should become. @default 2 */
  readonly ratio?: number
  /** The fewest code points that a chunk may be given; chunks that short are kept. @default 250 */
  readonly least?: number
  /** Tokens that the answer may take for each code point of its budget. @default 1.5 */
  readonly allowance?: number
  /** Tokens that the answer may take besides, for thinking and headings. @default 256 */
  readonly extra?: number
  /** How often an answer that is cut, empty or too long is asked for again. @default 3 */
  readonly tries?: number
  /** Of the first try; later ones are asked at 0.7 at least. @default 0 */
  readonly temperature?: number
  readonly prompts?: Partial<CondensePrompts>
}

const defaults = {
  ratio: 2,
  least: 250,
  allowance: 1.5,
  extra: 256,
  tries: 3,
  temperature: 0,
}

type Settings = Required<Omit<ModelOptions, 'prompts'>> & { readonly prompts: CondensePrompts }

/** Condenses chunks with a model; what it cannot make shorter stays as it was. */
export function modelCondenser(options: ModelOptions & BlockOptions): Condenser {
  return blockCondenser(modelChunks(options), options)
}

/** The model condenser, chunk by chunk. */
export function modelChunks(options: ModelOptions): ChunkCondenser {
  const settings: Settings = {
    ...defaults,
    ...options,
    prompts: { ...defaultPrompts, ...options.prompts },
  }
  checkSettings(settings)
  return {
    name: 'model',
    isPersonal: options.speaker === 'self',
    condense: (request, call) => condenseChunk(request, call, settings),
  }
}

function checkSettings({ ratio, least, allowance, extra, tries, prompts }: Settings): void {
  const limits = { ratio: [ratio, 1.000001], least: [least, 1], tries: [tries, 1] } as const
  const more = { allowance: [allowance, 0.01], extra: [extra, 0] } as const
  for (const [name, [value, lowest]] of Object.entries({ ...limits, ...more })) {
    if (!(value >= lowest)) {
      throw new RangeError(`model: ${name} is ${value}; it must be at least ${lowest}.`)
    }
  }
  for (const place of ['{budget}', '{text}']) {
    if (!prompts.user.includes(place)) {
      throw new Error(`model: the user prompt has no ${place}, so it cannot be filled in.`)
    }
  }
}

async function condenseChunk(
  { text, query }: ChunkRequest,
  call: CondenseCall,
  settings: Settings,
): Promise<CondensedChunk> {
  const { ratio, least, tries, prompts } = settings
  const length = codePoints(text)
  const budget = Math.max(least, Math.ceil(length / ratio))
  if (budget >= length) return { kind: 'kept' }
  const values = { text, query: query ?? prompts.noQuery, budget: String(budget) }
  const asked = [
    { role: 'system', content: prompts.system },
    { role: 'user', content: fillPrompt(prompts.user, values) },
  ] as const
  const used = { prompt: 0, sampled: 0 }
  let messages: readonly Message[] = asked
  let best: string | undefined
  let problem = ''
  for (let attempt = 0; attempt < tries; attempt++) {
    const speech = await ask(messages, call, { ...settings, budget, attempt })
    used.prompt += speech.usage.prompt
    used.sampled += speech.usage.sampled
    const answer = cleanAnswer(textOf(speech.message.content))
    problem = problemWith(speech, answer, { length, budget }) ?? ''
    if (problem === '') return { kind: 'condensed', text: answer, usage: used }
    if (isUsable(speech, answer, length) && answer.length < (best?.length ?? Infinity))
      best = answer
    const again = fillPrompt(prompts.again, { ...values, problem })
    messages = [...asked, speech.message, { role: 'user', content: again }]
  }
  // Above the budget, but shorter than the passage: better than the whole of it.
  if (best !== undefined) return { kind: 'condensed', text: best, usage: used }
  return { kind: 'failed', problem: `after ${tries} tries ${problem}` }
}

function ask(
  messages: readonly Message[],
  call: CondenseCall,
  settings: Settings & { readonly budget: number; readonly attempt: number },
): Promise<Speech> {
  const { speaker, budget, allowance, extra, attempt } = settings
  const maxTokens = Math.ceil(budget * allowance) + extra
  // Asked the same way at the same temperature, a model would only repeat itself.
  const temperature = attempt === 0 ? settings.temperature : Math.max(0.7, settings.temperature)
  const { signal, lane } = call
  const request = { signal, maxTokens, temperature, seed: attempt }
  if (speaker === 'self') return call.self.say(messages, request)
  return lane.run(call, () => speaker.say(messages, request))
}

/** An answer without the fence around it and the thinking before it. */
export function cleanAnswer(text: string): string {
  const end = text.lastIndexOf('</think>')
  const said = (end < 0 ? text : text.slice(end + '</think>'.length)).trim()
  const fenced = /^```[^\n`]*\n([\s\S]*)\n```$/.exec(said)
  return (fenced ? fenced[1]! : said).trim()
}

function problemWith(
  { finish }: Speech,
  answer: string,
  { length, budget }: { readonly length: number; readonly budget: number },
): string | undefined {
  if (finish === 'length') return 'the answer was cut at its end'
  if (!/[\p{L}\p{N}]/u.test(answer)) return 'the answer says nothing'
  const said = codePoints(answer)
  if (said >= length) return `the answer has ${said} characters, the passage ${length}`
  return said > budget ? `the answer has ${said} characters, not ${budget}` : undefined
}

function isUsable({ finish }: Speech, answer: string, length: number): boolean {
  return finish !== 'length' && /[\p{L}\p{N}]/u.test(answer) && codePoints(answer) < length
}
