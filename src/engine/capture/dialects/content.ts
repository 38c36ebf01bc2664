import type { Content, ContentPart } from '@espalier/text'

/** An image as messages hold it. */
export function imagePart(url: string): ContentPart {
  return { type: 'image_url', image_url: { url } }
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
