import { dataUrlBytes, formatReference } from '@espalier/text/images'
import { imageFacts } from '../../../rollout/images/keep.ts'

/** An item of OpenAI's Responses, as requests and answers hold it. */
export type ResponseItem = Readonly<Record<string, unknown>>

/**
 * What one attempt was answered over OpenAI's Responses, for requests that name earlier responses
 * or their items instead of repeating them. Bounded: the oldest is forgotten first.
 */
export class ResponseMemory {
  /** Both are made when something is kept: most attempts never speak this dialect. */
  #items: Map<string, ResponseItem> | undefined
  #responses: Map<string, readonly ResponseItem[]> | undefined
  readonly #most: number

  constructor(most = 4096) {
    this.#most = most
  }

  /** Remembers a response: the items that led to it, and those it gave. */
  keep(id: string, input: readonly ResponseItem[], output: readonly ResponseItem[]): void {
    this.#items ??= new Map()
    this.#responses ??= new Map()
    this.#responses.set(id, [...input.map(withReferences), ...output])
    for (const item of output) {
      if (typeof item.id === 'string') this.#items.set(item.id, item)
    }
    forgetOldest(this.#responses, this.#most)
    forgetOldest(this.#items, this.#most)
  }

  item(id: string): ResponseItem | undefined {
    return this.#items?.get(id)
  }

  /** The whole conversation up to and with a response. */
  conversation(id: string): readonly ResponseItem[] | undefined {
    return this.#responses?.get(id)
  }
}

/** An item with references in place of images, whose bytes would stay in memory as long as the attempt. */
function withReferences(item: ResponseItem): ResponseItem {
  const shown = ['content', 'output'].flatMap(name => {
    const parts = item[name]
    return Array.isArray(parts) && parts.some(isImage) ? [[name, parts.map(withReference)]] : []
  })
  return shown.length === 0 ? item : { ...item, ...Object.fromEntries(shown) }
}

const isImage = (part: ResponseItem): boolean =>
  part.type === 'input_image' && /^data:/i.test(String(part.image_url))

/** The reference by which the capture knows an image that it was sent. */
function withReference(part: ResponseItem): ResponseItem {
  if (!isImage(part)) return part
  const bytes = dataUrlBytes(String(part.image_url))!
  return { ...part, image_url: formatReference(imageFacts(bytes)) }
}

function forgetOldest(map: Map<string, unknown>, most: number): void {
  for (const key of map.keys()) {
    if (map.size <= most) return
    map.delete(key)
  }
}
