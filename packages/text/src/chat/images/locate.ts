import type { ImageLayout, ImageProcessor } from '../../images/index.ts'
import { type ImagePart, imagesIn } from '../../message.ts'
import type { ImageRange, RendererImages } from '../../renderer.ts'
import type { Tokenizer } from '../../tokenizers/tokenizer.ts'
import { layoutOf } from './expand.ts'

/** How a model takes images, by its processor and its tokenizer. */
export function rendererImages(processor: ImageProcessor, tokenizer: Tokenizer): RendererImages {
  const { family, placeholder } = processor
  const pattern = makePatterns(tokenizer)
  const square = processor.layout({ width: 1024, height: 1024 })
  return {
    family,
    placeholder: tokenizer.encode(placeholder),
    ids: new Set(pattern(square).controls.map(({ id }) => id)),
    count: part => {
      const { before, controls, after } = pattern(layoutOf(processor, part))
      const within = controls.reduce((sum, { count, gap }) => sum + count + gap, 0)
      return before.length + within + after.length
    },
    locate: (ids, messages) => {
      const places: ImageRange[] = []
      for (const part of imagesIn(messages)) {
        const from = places.at(-1)?.end ?? 0
        places.push(find(ids, from, pattern(layoutOf(processor, part)), part))
      }
      return places
    },
  }
}

/** A layout as ids: its control tokens in a row, and the text around and between them. */
interface Pattern {
  readonly before: Int32Array
  readonly controls: readonly Run[]
  readonly after: Int32Array
}

/** Control tokens in a row, and how many tokens of text stand before them. */
interface Run {
  readonly id: number
  readonly count: number
  readonly gap: number
}

function makePatterns(tokenizer: Tokenizer): (layout: ImageLayout) => Pattern {
  const known = new WeakMap<ImageLayout, Pattern>()
  const make = (layout: ImageLayout): Pattern => {
    const controls: Run[] = []
    let before = new Int32Array(0)
    let text = ''
    for (const [token, count] of layout) {
      const id = tokenizer.idOf(token)
      if (id === undefined || token.trim() === '') {
        if (token.trim() !== '') throw new Error(`the tokenizer has no token ${token}`)
        text += token.repeat(count)
        continue
      }
      const gap = tokenizer.encode(text)
      if (controls.length === 0) before = new Int32Array(gap)
      controls.push({ id, count, gap: controls.length === 0 ? 0 : gap.length })
      text = ''
    }
    return { before, controls, after: tokenizer.encode(text) }
  }
  return layout => {
    const found = known.get(layout) ?? make(layout)
    known.set(layout, found)
    return found
  }
}

/** The first place from `from` on where a layout stands. Text of messages never becomes its tokens. */
function find(ids: Int32Array, from: number, pattern: Pattern, part: ImagePart): ImageRange {
  const { before, controls, after } = pattern
  const [first] = controls
  for (let at = ids.indexOf(first!.id, from); at >= 0; at = ids.indexOf(first!.id, at + 1)) {
    const end = endOf(ids, at, controls)
    if (end === undefined) continue
    const start = isAt(ids, at - before.length, before) ? at - before.length : at
    return { part, start, end: isAt(ids, end, after) ? end + after.length : end }
  }
  throw new Error('the tokens of an image are not where the chat template wrote them')
}

function endOf(ids: Int32Array, start: number, controls: readonly Run[]): number | undefined {
  let at = start
  for (const { id, count, gap } of controls) {
    at += gap
    for (let token = 0; token < count; token++) if (ids[at + token] !== id) return undefined
    at += count
  }
  return at
}

function isAt(ids: Int32Array, at: number, text: Int32Array): boolean {
  return at >= 0 && text.every((id, token) => ids[at + token] === id)
}
