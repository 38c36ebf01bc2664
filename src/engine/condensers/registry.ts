import type { Condenser } from '../../base/core/condenser.ts'
import { findPart, type OptionKind, type PartShape } from '../../base/core/names/part-options.ts'
import type { Speaker } from '../../base/core/speaker.ts'
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

/** The defaults for when and how far contexts are condensed. */
export const defaultCondensing = { above: 0.75, to: 0.5, trainSummaries: true } as const

type Values = Readonly<Record<string, never>>

interface CondenserFactory extends PartShape {
  readonly about: string
  open(
    values: Values,
    needs: CondenserNeeds,
  ): Condenser | Promise<Condenser & Partial<AsyncDisposable>>
}

const common = {
  above: 'positive-share',
  to: 'positive-share',
  trainSummaries: 'switch',
} as const satisfies Readonly<Record<string, OptionKind>>

const chunking = {
  size: 'count',
  unit: ['characters', 'tokens'],
  boundary: ['none', 'blank-line', 'line'],
  minimum: 'count',
  keep: 'whole',
  openings: 'switch',
  recall: 'switch',
  recallCharacters: 'count',
  tool: 'text',
} as const satisfies Readonly<Record<string, OptionKind>>

/** The condensers that can be named. */
export const condensers: Readonly<Record<string, CondenserFactory>> = {
  'keep-last-turns': {
    about: 'Leaves out the oldest turns, with a note in their place.',
    options: { turns: 'count', ...common },
    open: values => keepLastTurns(values),
  },
  'trim-tool-output': {
    about: 'Trims what tools said in older turns.',
    options: { characters: 'count', keep: 'whole', ...common },
    open: values => trimToolOutput(values),
  },
  keyword: {
    about: 'Names, notions and who did what, without a model; originals can be recalled.',
    options: {
      ...chunking,
      ratio: 'amount',
      relations: 'whole',
      terms: 'whole',
      opening: 'whole',
      ...common,
    },
    open: (values, needs) => keywordCondenser({ ...values, ...blockOptions(values, needs) }),
  },
  model: {
    about:
      'Another model, or the policy itself (policy=self), chunk by chunk; originals can be recalled.',
    options: {
      ...chunking,
      policy: 'text',
      ratio: 'amount',
      least: 'count',
      allowance: 'amount',
      extra: 'whole',
      tries: 'count',
      temperature: 'amount',
      ...common,
    },
    open: openModel,
  },
  self: {
    about: 'The policy writes notes on what it needs of the older turns; they are trained.',
    options: { tokens: 'count', keep: 'whole', tries: 'count', prompt: 'text', ...common },
    open: values => selfCondenser(values),
  },
}

/** Opens a condenser as it is named on a command line: `keyword:ratio=3,above=0.8`. */
export async function openCondenser(text: string, needs: CondenserNeeds): Promise<OpenedCondenser> {
  const { name, factory, values } = findPart('condenser', text, condensers)
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
