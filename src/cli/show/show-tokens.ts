import type { Renderer } from '@espalier/text'
import type { GivenSegment, Segment } from '../../base/core/segment.ts'
import { type Place, pathTo, type Tree } from '../../base/core/tree.ts'
import type { Terminal } from '../terminal.ts'

/** What tokens are shown with. */
export interface TokenView {
  readonly terminal: Terminal
  /** Writes ids as text; without it they are shown as numbers. */
  readonly renderer: Renderer | undefined
}

/** Prints a path segment by segment; sampled tokens with their log-probabilities. */
export function showTokens(tree: Tree, end: Place, { terminal, renderer }: TokenView): void {
  terminal.print(
    terminal.paint(
      'dim',
      'sampled tokens: green above −0.5, yellow above −2, red below; piped, their log-probability stands behind them',
    ),
  )
  for (const { node, start, length } of pathTo(tree, end)) {
    const { segment } = tree.nodes[node]!
    const version = segment.origin === 'sampled' ? `  version ${segment.version.from}` : ''
    const title = `${segment.origin} [${start}, ${start + length})${version}`
    terminal.print(terminal.paint('dim', title))
    terminal.print(words(segment, length, { terminal, renderer }).join(renderer ? '' : ' '))
  }
}

function words(segment: Segment, length: number, { terminal, renderer }: TokenView): string[] {
  if (segment.origin !== 'sampled') return givenWords(segment, length, renderer)
  const texts = textsOf(segment.ids.subarray(0, length), renderer)
  return texts.map((text, index) => {
    const logprob = segment.logprobs?.[index]
    const number = logprob === undefined || Number.isNaN(logprob) ? '' : `⟨${logprob.toFixed(2)}⟩`
    return terminal.isColoured ? terminal.paint(colourOf(logprob), text) : text + number
  })
}

/** Tokens that were given; those of an image as one. */
function givenWords(
  { ids, images = [] }: GivenSegment,
  length: number,
  renderer: Renderer | undefined,
): string[] {
  const words: string[] = []
  let from = 0
  for (const { start, end, width, height } of images.filter(image => image.end <= length)) {
    words.push(...textsOf(ids.subarray(from, start), renderer))
    words.push(`[image of ${width} x ${height} pixels, ${end - start} tokens]`)
    from = end
  }
  return [...words, ...textsOf(ids.subarray(from, length), renderer)]
}

/** The text of each token; a token that ends inside a character is joined with the one that ends it. */
function textsOf(ids: Int32Array, renderer: Renderer | undefined): string[] {
  if (!renderer) return [...ids].map(String)
  const texts: string[] = []
  let from = 0
  for (let index = 0; index < ids.length; index++) {
    const text = renderer.decode(ids.subarray(from, index + 1))
    const isOpen = text.endsWith('\uFFFD') && index + 1 < ids.length && index - from < 3
    texts.push(isOpen ? '' : onOneLine(text))
    if (!isOpen) from = index + 1
  }
  return texts
}

/** Line ends and control characters are written as escapes; quotes need none here. */
function onOneLine(text: string): string {
  return JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"')
}

/** Sure tokens are green, surprising ones red. */
function colourOf(logprob: number | undefined): 'green' | 'yellow' | 'red' | 'cyan' {
  if (logprob === undefined || Number.isNaN(logprob)) return 'cyan'
  if (logprob > -0.5) return 'green'
  return logprob > -2 ? 'yellow' : 'red'
}
