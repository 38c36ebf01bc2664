/** An item of OpenAI's Responses, as requests and answers hold it. */
export type ResponseItem = Readonly<Record<string, unknown>>

/**
 * What one attempt was answered over OpenAI's Responses, for requests that name earlier responses
 * or their items instead of repeating them. Bounded: the oldest is forgotten first.
 */
export class ResponseMemory {
  readonly #items = new Map<string, ResponseItem>()
  readonly #responses = new Map<string, readonly ResponseItem[]>()
  readonly #most: number

  constructor(most = 4096) {
    this.#most = most
  }

  /** Remembers a response: the items that led to it, and those it gave. */
  keep(id: string, input: readonly ResponseItem[], output: readonly ResponseItem[]): void {
    this.#responses.set(id, [...input, ...output])
    for (const item of output) {
      if (typeof item.id === 'string') this.#items.set(item.id, item)
    }
    forgetOldest(this.#responses, this.#most)
    forgetOldest(this.#items, this.#most)
  }

  item(id: string): ResponseItem | undefined {
    return this.#items.get(id)
  }

  /** The whole conversation up to and with a response. */
  conversation(id: string): readonly ResponseItem[] | undefined {
    return this.#responses.get(id)
  }
}

function forgetOldest(map: Map<string, unknown>, most: number): void {
  for (const key of map.keys()) {
    if (map.size <= most) return
    map.delete(key)
  }
}
