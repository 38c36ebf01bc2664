import type { Condenser } from '../core/condenser.ts'
import { parsePartName, UnknownPartError } from '../core/part-name.ts'
import type { Speaker } from '../core/speaker.ts'
import type { BlockOptions } from './block-condenser.ts'
import { keepLastTurns } from './keep-last-turns.ts'
import { keywordCondenser } from './keyword.ts'
import { modelCondenser } from './model.ts'
import { selfCondenser } from './self.ts'
import { trimToolOutput } from './trim-tool-output.ts'

/** What opening a condenser may need. */
export interface CondenserNeeds {
  /** Opens another model by its URI, such as `openai:http://localhost:8000/v1`. */
  openSpeaker(uri: string): Promise<Speaker & Partial<AsyncDisposable>>
  /** How many tokens a text has, for chunks that are measured in tokens. */
  countTokens?(text: string): number
}

/** When and how far contexts are condensed. */
interface Shares {
  /** Share of the context from which on a conversation is condensed. @default 0.75 */
  readonly above: number
  /** Share of the context that the condensed conversation may take. @default 0.5 */
  readonly to: number
  /** Whether the policy's own summaries are trained. @default true */
  readonly trainSummaries: boolean
}

/** A condenser with when and how far it condenses. Disposing of it lets go of the model it opened. */
export interface OpenedCondenser extends Shares, AsyncDisposable {
  readonly condenser: Condenser
}

/** When and how far contexts are condensed where nothing else is said. */
export const defaultCondensing = { above: 0.75, to: 0.5, trainSummaries: true } as const

type Kind = 'number' | 'share' | 'switch' | 'text' | readonly string[]
type Values = Readonly<Record<string, never>>

interface CondenserFactory {
  readonly about: string
  readonly options: Readonly<Record<string, Kind>>
  open(
    values: Values,
    needs: CondenserNeeds,
  ): Condenser | Promise<Condenser & Partial<AsyncDisposable>>
}

const common: Readonly<Record<string, Kind>> = {
  above: 'share',
  to: 'share',
  trainSummaries: 'switch',
}

const chunking: Readonly<Record<string, Kind>> = {
  size: 'number',
  unit: ['characters', 'tokens'],
  boundary: ['none', 'blank-line', 'line'],
  minimum: 'number',
  keep: 'number',
  openings: 'switch',
  recall: 'switch',
  recallCharacters: 'number',
  tool: 'text',
}

/** The condensers that can be named. */
export const condensers: Readonly<Record<string, CondenserFactory>> = {
  'keep-last-turns': {
    about: 'Leaves out the oldest turns, with a note in their place.',
    options: { turns: 'number' },
    open: values => keepLastTurns(values),
  },
  'trim-tool-output': {
    about: 'Trims what tools said in older turns.',
    options: { characters: 'number', keep: 'number' },
    open: values => trimToolOutput(values),
  },
  keyword: {
    about: 'Names, notions and who did what, without a model; originals can be recalled.',
    options: {
      ...chunking,
      ratio: 'number',
      relations: 'number',
      terms: 'number',
      opening: 'number',
    },
    open: (values, needs) => keywordCondenser({ ...values, ...blockOptions(values, needs) }),
  },
  model: {
    about:
      'Another model, or the policy itself (policy=self), chunk by chunk; originals can be recalled.',
    options: {
      ...chunking,
      policy: 'text',
      ratio: 'number',
      least: 'number',
      allowance: 'number',
      extra: 'number',
      tries: 'number',
      temperature: 'number',
    },
    open: openModel,
  },
  self: {
    about: 'The policy writes notes on what it needs of the older turns; they are trained.',
    options: { tokens: 'number', keep: 'number', tries: 'number', prompt: 'text' },
    open: values => selfCondenser(values),
  },
}

/** Opens a condenser as it is named on a command line: `keyword:ratio=3,above=0.8`. */
export async function openCondenser(text: string, needs: CondenserNeeds): Promise<OpenedCondenser> {
  const { name, variant, options } = parsePartName(text)
  const factory = Object.hasOwn(condensers, name) ? condensers[name] : undefined
  if (!factory) throw new UnknownPartError('condenser', name, Object.keys(condensers))
  if (variant !== undefined) throw new Error(`condenser "${name}" has no variant "${variant}"`)
  const known = { ...factory.options, ...common }
  const values = Object.fromEntries(
    [...options].map(([key, value]) => [key, readOption(name, known, { key, value })]),
  )
  const { above, to, trainSummaries, ...own }: Shares & Record<string, unknown> = {
    ...defaultCondensing,
    ...values,
  }
  if (to >= above) {
    throw new RangeError(`condenser "${name}": to is ${to}; it must be below above, ${above}.`)
  }
  const condenser = await factory.open(own as Values, needs)
  return {
    condenser,
    above,
    to,
    trainSummaries,
    [Symbol.asyncDispose]: async () =>
      await (condenser as Partial<AsyncDisposable>)[Symbol.asyncDispose]?.(),
  }
}

function readOption(
  name: string,
  known: Readonly<Record<string, Kind>>,
  { key, value }: { readonly key: string; readonly value: string },
): number | string | boolean {
  const kind = Object.hasOwn(known, key) ? known[key]! : undefined
  const fail = (wanted: string): never => {
    throw new Error(`condenser "${name}": ${key} is ${wanted}, not "${value}"`)
  }
  if (kind === undefined) {
    const all = Object.keys(known).join(', ')
    throw new Error(`condenser "${name}" has no option "${key}". Known: ${all}.`)
  }
  if (typeof kind === 'object') return kind.includes(value) ? value : fail(kind.join(' or '))
  if (kind === 'text') return value === '' ? fail('a text') : value
  if (kind === 'switch') {
    return value === 'true' || value === 'false' ? value === 'true' : fail('true or false')
  }
  const number = Number(value)
  if (value === '' || !Number.isFinite(number) || number < 0) return fail('a number from 0 on')
  return kind === 'share' && (number <= 0 || number > 1)
    ? fail('a share above 0 and up to 1')
    : number
}

interface BlockValues {
  readonly size?: number
  readonly unit?: string
  readonly boundary?: string
  readonly minimum?: number
  readonly keep?: number
  readonly openings?: boolean
  readonly recall?: boolean
  readonly recallCharacters?: number
  readonly tool?: string
}

const boundaries: Readonly<Record<string, RegExp>> = {
  'blank-line': /(?<=\n[ \t]*\n)(?!\s)/,
  line: /(?<=\n)/,
}

/** The options that condensers of blocks share. Only what was given is set. */
function blockOptions(values: BlockValues, needs: CondenserNeeds): BlockOptions {
  const { size, unit, boundary, minimum, keep, openings, recall, recallCharacters, tool } = values
  const pattern = boundary === undefined ? undefined : boundaries[boundary]
  return {
    chunk: {
      ...(size !== undefined && { size }),
      ...(unit === 'tokens' && { measure: tokenCount(needs) }),
      ...(pattern && { boundary: pattern }),
    },
    ...(minimum !== undefined && { minimum }),
    ...(keep !== undefined && { keep }),
    ...(openings !== undefined && { openings }),
    recall: recall !== false && {
      ...(recallCharacters !== undefined && { characters: recallCharacters }),
      ...(tool !== undefined && { tool }),
    },
  }
}

function tokenCount({ countTokens }: CondenserNeeds): (text: string) => number {
  if (countTokens) return countTokens
  throw new Error('chunks cannot be measured in tokens here: no tokenizer is open')
}

async function openModel(
  values: Values,
  needs: CondenserNeeds,
): Promise<Condenser & Partial<AsyncDisposable>> {
  const { policy, ...rest } = values as { readonly policy?: string }
  if (policy === undefined) {
    throw new Error('condenser "model" needs policy=URI: which model condenses; self is the policy')
  }
  const options = { ...rest, ...blockOptions(values, needs) }
  if (policy === 'self') return modelCondenser({ ...options, speaker: 'self' })
  const speaker = await needs.openSpeaker(policy)
  return {
    ...modelCondenser({ ...options, speaker }),
    [Symbol.asyncDispose]: async () => await speaker[Symbol.asyncDispose]?.(),
  }
}
