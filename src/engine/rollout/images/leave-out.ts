import { type ContentPart, imagesIn, type Message } from '@espalier/text'
import { leftOutImage } from '../../../base/core/image.ts'

/** Messages without their oldest images, so that at most `most` are left; each leaves a word in its place. */
export function withoutOldest(messages: readonly Message[], most: number): readonly Message[] {
  let surplus = imagesIn(messages).length - most
  return messages.map(message => {
    const { content } = message
    if (surplus <= 0 || typeof content === 'string' || content === null) return message
    const parts = content.map((part): ContentPart => {
      if (part.type === 'text' || surplus-- <= 0) return part
      return leftOutImage
    })
    return { ...message, content: parts }
  })
}
