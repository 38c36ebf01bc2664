import type { Condenser } from '../../base/core/condenser.ts'
import { type BlockOptions, blockCondenser } from './block-condenser.ts'
import { codePoints } from './chunk.ts'
import type { ChunkCondenser } from './condense-chunks.ts'
import { readEnglish, requireEnglish } from './english.ts'
import { type FactLimits, writeFacts } from './facts.ts'
import { isEnglish, readAnyLanguage } from './frequency.ts'

/** How much of a text the keyword condenser keeps. */
export interface KeywordOptions extends Partial<FactLimits> {
  /** How many times shorter a chunk becomes. @default 4 */
  readonly ratio?: number
}

const defaults = { ratio: 4, relations: 3, terms: 8, opening: 160 }

/**
 * Condenses texts without a model: their first sentence, who did what to whom, names and notions.
 * English is parsed; in other languages the most frequent words are kept.
 */
export function keywordCondenser(options: KeywordOptions & BlockOptions = {}): Condenser {
  const { ratio, relations, terms, opening, ...rest } = { ...defaults, ...options }
  return blockCondenser(keywordChunks({ ratio, relations, terms, opening }), rest)
}

/** The keyword condenser, chunk by chunk: never more than the text's length over the ratio. */
export function keywordChunks(options: KeywordOptions = {}): ChunkCondenser {
  const { ratio, ...limits } = { ...defaults, ...options }
  if (!(ratio > 1)) throw new RangeError(`keyword: ratio is ${ratio}; it must be above 1.`)
  for (const [name, value] of Object.entries(limits)) {
    if (!(value >= 0)) throw new RangeError(`keyword: ${name} is ${value}; it must be at least 0.`)
  }
  requireEnglish()
  return {
    name: 'keyword',
    async condense({ text, query }) {
      const facts = isEnglish(text) ? await readEnglish(text) : readAnyLanguage(text)
      const budget = Math.max(1, Math.ceil(codePoints(text) / ratio))
      const options = { limits, text, ...(query !== undefined && { query }) }
      return { kind: 'condensed', text: writeFacts(facts, budget, options) }
    },
  }
}
