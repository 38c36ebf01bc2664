/** How many bytes a server's message may have, and what is called if it has more. */
export interface Bounds {
  readonly bytes: number
  overrun(why: string): void
}

/** A `fetch` that refuses messages longer than the bound; a stream may hold any number of events, each within it. */
export function boundedFetch({ bytes, overrun }: Bounds): typeof fetch {
  return async (input, init) => {
    const response = await fetch(input, init)
    if (!response.body) return response
    const isStream = response.headers.get('content-type')?.includes('event-stream') ?? false
    let size = 0
    const counted = new TransformStream<Uint8Array, Uint8Array>({
      transform(part, controller) {
        const end = isStream ? lastEventEnd(part) : -1
        size = end < 0 ? size + part.length : part.length - end
        if (size <= bytes) return controller.enqueue(part)
        const why = `it sent a message of more than ${bytes} bytes`
        controller.error(new Error(why))
        overrun(why)
      },
    })
    const { status, statusText, headers } = response
    return new Response(response.body.pipeThrough(counted), { status, statusText, headers })
  }
}

/** Where the last event of a part ends, which is behind an empty line; -1 if none does. */
function lastEventEnd(part: Uint8Array): number {
  const text = Buffer.from(part.buffer, part.byteOffset, part.byteLength)
  return Math.max(...['\n\n', '\r\n\r\n', '\r\r'].map(line => text.lastIndexOf(line)))
}
