import type { ImageLayout, ImageProcessor } from '../../images/index.ts'
import { layoutText, sizeAt } from '../../images/index.ts'
import { type ImagePart, imagesIn, type Message, textOf } from '../../message.ts'
import type { Dialect } from '../calibration/dialect.ts'
import type { Chat, ChatText } from '../chat.ts'

/** Where an image is named: a reference, a data URL, or another address. */
export function addressOf(part: ImagePart): string {
  if (part.type === 'image_url') return part.image_url.url
  const { source } = part
  return source.type === 'url' ? source.url : `data:${source.media_type};base64,${source.data}`
}

const layouts = new WeakMap<ImagePart, { readonly by: ImageProcessor; readonly is: ImageLayout }>()

/** The tokens that an image of a message becomes. */
export function layoutOf(processor: ImageProcessor, part: ImagePart): ImageLayout {
  const known = layouts.get(part)
  if (known?.by === processor) return known.is
  const layout = processor.layout(sizeAt(addressOf(part)))
  layouts.set(part, { by: processor, is: layout })
  return layout
}

/**
 * A chat that writes images as the model's own processor would: what stands for each in the rendered text is
 * replaced by its tokens. Conversations without images pass through.
 */
export function withImages(chat: Chat, processor: ImageProcessor, parts: Dialect['parts']): Chat {
  return {
    ...chat,
    render(request) {
      const images = imagesIn(request.messages)
      if (images.length === 0) return chat.render(request)
      const sign = parts === 'text' ? unusedSign(request.messages) : processor.placeholder
      const messages =
        parts === 'text' ? request.messages.map(each => inOneText(each, sign)) : request.messages
      const rendered = chat.render({ ...request, messages })
      const places = placesOf(sign, rendered, parts === 'list')
      if (places.length !== images.length) throw new Error(countProblem(images.length, places))
      const texts = images.map(image => {
        const written = layoutText(layoutOf(processor, image))
        if (parts === 'list') return written
        return processor.inText.replace(processor.placeholder, () => written)
      })
      return { ...rendered, ...replaced(rendered, { sign, places, texts }) }
    },
  }
}

function countProblem(images: number, { length }: readonly number[]): string {
  return `the chat template shows ${length} of ${images} images: does it show images of this role?`
}

/** Text that no message has, to stand for images if a template takes one text. */
function unusedSign(messages: readonly Message[]): string {
  const said = JSON.stringify(messages)
  let sign = '\u{F0000}image\u{F0001}'
  while (said.includes(sign)) sign += '\u{F0001}'
  return sign
}

/** Images come before the words and are lines of their own, as servers write them for such templates. */
function inOneText(message: Message, sign: string): Message {
  const count = imagesIn([message]).length
  return count === 0
    ? message
    : { ...message, content: `${sign}\n`.repeat(count) + textOf(message.content) }
}

/** Where the sign stands; with `own`, only where the template itself wrote all of it. */
function placesOf(sign: string, { text, foreign }: ChatText, own: boolean): readonly number[] {
  const places: number[] = []
  for (let at = text.indexOf(sign); at >= 0; at = text.indexOf(sign, at + sign.length)) {
    const isForeign = foreign.some(([start, end]) => start < at + sign.length && at < end)
    if (!own || !isForeign) places.push(at)
  }
  return places
}

interface Replacement {
  readonly sign: string
  readonly places: readonly number[]
  readonly texts: readonly string[]
}

/** A text with something else at these places; ranges from messages stay what they were around them. */
function replaced({ text, foreign }: ChatText, { sign, places, texts }: Replacement): ChatText {
  let [written, read] = ['', 0]
  const ranges: (readonly [number, number])[] = []
  const copy = (end: number): void => {
    const moved = written.length - read
    for (const [from, to] of foreign) {
      const [low, high] = [Math.max(from, read), Math.min(to, end)]
      if (low < high) ranges.push([low + moved, high + moved])
    }
    written += text.slice(read, end)
  }
  for (const [index, at] of places.entries()) {
    copy(at)
    written += texts[index]
    read = at + sign.length
  }
  copy(text.length)
  return { text: written, foreign: ranges }
}
