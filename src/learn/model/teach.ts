import { createRenderer, type ModelRenderer } from '@espalier/text/chat'
import { random, seedOf, shuffle } from '../../base/math/random.ts'
import type { Conversation } from '../../run/demonstrations/conversation.ts'
import { type EmbeddedModel, type ModelSettings, type ModelShape, openModel } from './model.ts'
import { conversationRow, type SupervisedOptions, trainSupervised } from './supervised.ts'
import { toolFormat } from './template.ts'
import {
  buildVocabulary,
  tokenizerFiles,
  toModelFiles,
  type VocabularyOptions,
} from './vocabulary.ts'

/** How a model is made from demonstrations. */
export interface TeachModelOptions
  extends SupervisedOptions,
    Pick<ModelSettings, 'threads' | 'kernel'> {
  /** Sizes of the transformer; the vocabulary's follows from the demonstrations. */
  readonly shape?: Partial<Omit<ModelShape, 'vocabulary'>>
  readonly vocabulary?: VocabularyOptions
  /** Texts whose words the vocabulary should have beside those of the demonstrations. */
  readonly texts?: readonly string[]
  /** Keeps a tenth of the demonstrations for validation, to stop before the others are memorised. @default false */
  readonly keepsApart?: boolean
  /** Called with the number of demonstrations that are left out because they exceed the context. */
  readonly onLeftOut?: (count: number) => void
}

/** The default sizes: about 150,000 parameters. */
const defaultShape = { width: 64, layers: 3, heads: 4, hidden: 128, context: 1024 } as const

/** Makes a model from demonstrations: a vocabulary of their words, then supervised training. */
export async function teachModel(
  conversations: readonly Conversation[],
  options: TeachModelOptions,
): Promise<EmbeddedModel> {
  if (conversations.length === 0) throw new RangeError('There is no demonstration to learn from.')
  const files = vocabularyFiles(conversations, options)
  const renderer = rendererFor('taught', files)
  const shape = { ...defaultShape, ...options.shape, vocabulary: renderer.vocabulary }
  const all = conversations.map(conversation => conversationRow(renderer, conversation))
  const rows = all.filter(({ ids }) => ids.length <= shape.context)
  if (rows.length === 0) {
    throw new RangeError(`No demonstration fits into the context of ${shape.context} tokens.`)
  }
  if (rows.length < all.length) options.onLeftOut?.(all.length - rows.length)
  const [apart, taught] = options.keepsApart ? split(rows, options.seed) : [[], rows]
  const { threads, kernel, seed } = options
  const model = await openModel(
    { shape, seed, files },
    { ...(threads !== undefined && { threads }), ...(kernel && { kernel }) },
  )
  try {
    await trainSupervised(model, taught, { ...options, apart })
    return model
  } catch (cause) {
    await model[Symbol.asyncDispose]()
    throw cause
  }
}

/** A tenth of the rows, at most 64 and none of fewer than ten, and the others. */
function split<Row>(rows: readonly Row[], seed: number): readonly [readonly Row[], readonly Row[]] {
  const count = Math.min(64, Math.floor(rows.length / 10))
  const order = shuffle(rows, random(seedOf(seed, 'apart')))
  return [order.slice(0, count), order.slice(count)]
}

/** Tokenizer and template files with the words of conversations and texts. */
function vocabularyFiles(
  conversations: readonly Conversation[],
  { vocabulary = {}, texts = [] }: TeachModelOptions,
): ReadonlyMap<string, Uint8Array> {
  const { chat } = rendererFor('empty', tokenizerFiles(buildVocabulary([])))
  const written = conversations.map(
    ({ messages, tools }) => chat.render({ messages, tools, opensTurn: false }).text,
  )
  return tokenizerFiles(buildVocabulary([...written, ...texts], vocabulary))
}

/** The renderer of an embedded model's own files. */
export function rendererFor(name: string, files: ReadonlyMap<string, Uint8Array>): ModelRenderer {
  // The template writes no date, so any date will do.
  return createRenderer(toModelFiles(name, files), { toolFormat, clock: () => new Date(0) })
}
