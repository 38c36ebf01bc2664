import { type Message, textOf } from '@espalier/text'
import { type Block, blocksIn } from '../../engine/condensers/blocks.ts'
import { tellingWords, wordsOf } from '../../engine/condensers/words.ts'

/** Why a block must be recalled: words that matter and stand only in its original. */
export interface Need {
  readonly block: Block
  readonly lost: readonly string[]
}

/**
 * The blocks whose originals are needed: they contain words that matter and that are not shown
 * anywhere. In the order of their numbers.
 */
export function neededBlocks(
  blocks: readonly Block[],
  shown: readonly Message[],
  matter: string,
): readonly Need[] {
  const words = tellingWords(matter)
  const seen = new Set(shown.flatMap(({ content }) => wordsOf(textOf(content))))
  return blocks.flatMap(block => {
    const lost = [...new Set(wordsOf(block.original))].filter(
      word => words.has(word) && !seen.has(word),
    )
    return lost.length > 0 ? [{ block, lost }] : []
  })
}

/**
 * The blocks of supporting passages if condensing lost words that link the passage to the
 * question, to its answer or to the other supporting passages.
 */
export function supportingBlocks(
  blocks: readonly Block[],
  shown: readonly Message[],
  { texts, matter }: { readonly texts: readonly string[]; readonly matter: string },
): readonly Need[] {
  const condensed = blocksIn(shown)
  const support = blocks.filter(({ original }) => texts.some(text => isFrom(original, text)))
  const words = tellingWords([matter, ...titlesOf(texts)].join(' '))
  return support.flatMap(block => {
    const kept = new Set(wordsOf(condensed.get(block.number) ?? ''))
    const lost = [...new Set(wordsOf(block.original))].filter(
      word => words.has(word) && !kept.has(word),
    )
    return lost.length > 0 ? [{ block, lost }] : []
  })
}

/** The titles of passages, by which other passages refer to them. */
function titlesOf(texts: readonly string[]): readonly string[] {
  return texts.map(text => text.slice(0, Math.max(0, text.indexOf(':'))))
}

function isFrom(original: string, text: string): boolean {
  return text.includes(original) || original.includes(text)
}
