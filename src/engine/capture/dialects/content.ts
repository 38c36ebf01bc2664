import type { Content, ContentPart } from '@espalier/text'
import { refuseUnsupported } from './fields.ts'

/** An image to pass on, or a refusal if the policy reads none. */
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

/** The URL of an image as frameworks hold it: bytes, base64, a URL, or an object that says which; undefined if it is neither. */
export function imageUrl(data: unknown, mediaType: string): string | undefined {
  if (data instanceof URL) return data.href
  if (data instanceof Uint8Array) {
    return `data:${mediaType};base64,${Buffer.from(data).toString('base64')}`
  }
  if (typeof data === 'string') {
    return /^(https?|data):/.test(data) ? data : `data:${mediaType};base64,${data}`
  }
  if (typeof data !== 'object' || data === null) return undefined
  const held = data as { readonly url?: unknown; readonly data?: unknown }
  return imageUrl(held.url ?? held.data, mediaType)
}
