import type { ContentPart } from '@espalier/text'
import { isRecord } from './json-schema.ts'

/** What a tool gave in parts, if it gave a list of texts and images with an image among them. */
export function partsOf(output: unknown): readonly ContentPart[] | undefined {
  if (!Array.isArray(output) || !output.some(isImage)) return undefined
  const parts = output.map(partOf)
  return parts.every(part => part !== undefined) ? parts : undefined
}

const isImage = (part: unknown): boolean =>
  isRecord(part) && (part.type === 'image_url' || part.type === 'image')

/** A part in OpenAI's form; images may be in Anthropic's form, or in that of MCP. */
function partOf(part: unknown): ContentPart | undefined {
  if (!isRecord(part)) return undefined
  const { type, text, data, mimeType, source, image_url: image } = part
  if (type === 'text' && typeof text === 'string') return { type, text }
  if (type === 'image_url' && isRecord(image) && typeof image.url === 'string')
    return { type, image_url: { url: image.url } }
  if (type !== 'image') return undefined
  if (typeof data === 'string') return atUrl(dataUrl(mimeType, data))
  if (!isRecord(source)) return undefined
  if (typeof source.data === 'string') return atUrl(dataUrl(source.media_type, source.data))
  return typeof source.url === 'string' ? atUrl(source.url) : undefined
}

const atUrl = (url: string): ContentPart => ({ type: 'image_url', image_url: { url } })

const dataUrl = (kind: unknown, data: string): string => `data:${String(kind)};base64,${data}`

/** What a policy that only reads is shown: each image is a word. */
export function textOfParts(parts: readonly ContentPart[]): string {
  return parts.map(part => (part.type === 'text' ? part.text : imageWord(part))).join('\n')
}

function imageWord(part: Exclude<ContentPart, { type: 'text' }>): string {
  const url = part.type === 'image_url' ? part.image_url.url : ''
  const kind = /^data:([^;,]{1,60})/i.exec(url)?.[1]
  return kind === undefined ? '[image]' : `[image ${kind}]`
}
