import type { Content, ContentPart } from '../../core/message.ts'
import { refuseUnsupported } from './fields.ts'

/** An image to pass on, or a refusal where the policy reads none. */
export function imagePart(url: string, place: string, images: boolean | undefined): ContentPart {
  if (images) return { type: 'image_url', image_url: { url } }
  return refuseUnsupported(place, 'is an image, and this policy reads text only')
}

/**
 * Parts as a message holds them: texts alone become one text, since chat templates write lists of
 * parts differently and the split says nothing to a policy.
 */
export function joinParts(parts: readonly ContentPart[], between: string): Content {
  const texts = parts.flatMap(part => (part.type === 'text' ? [part.text] : []))
  return texts.length === parts.length ? texts.join(between) : parts
}
