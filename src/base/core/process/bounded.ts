/** Reads to its end what somebody else sends; throws as soon as it is longer than it may be. */
export async function readBounded(
  stream: AsyncIterable<Uint8Array> | null,
  most: number,
): Promise<Buffer> {
  const parts: Uint8Array[] = []
  let size = 0
  for await (const part of stream ?? []) {
    size += part.length
    if (size > most) throw new Error(`it sent more than ${most} bytes`)
    parts.push(part)
  }
  return Buffer.concat(parts)
}

/** Values in lists and objects: what is parsed in a moment, and more than any message of ours has. */
export const mostMembers = 1_000_000

/** Brackets within brackets: deeper than any message of ours, and far from the end of the stack. */
export const deepest = 128

/** A text of fewer characters cannot hold the event loop for long, whatever is in it. */
const short = mostMembers

/** Parses JSON of somebody else; throws if it is none, or has so many values that parsing would hold the event loop. */
export function parseBounded(text: string, most = mostMembers): unknown {
  if (text.length > short) {
    const { depth, members } = shapeOf(text, most)
    if (depth > deepest) throw new Error(`it is nested deeper than ${deepest} levels`)
    if (members > most) throw new Error(`it has more than ${most} values`)
  }
  return JSON.parse(text)
}

const quote = 0x22
const comma = 0x2c
const backslash = 0x5c

/** How deep JSON is nested, and how many values it has at most; stops counting beyond what is allowed. */
export function shapeOf(
  json: string,
  most = mostMembers,
): { readonly depth: number; readonly members: number } {
  let level = 0
  let depth = 0
  let members = 1
  for (let at = 0; at < json.length && depth <= deepest && members <= most; at++) {
    const code = json.charCodeAt(at)
    if (code === quote) at = endOfText(json, at + 1)
    else if (code === comma) members++
    else if (code === 0x5b || code === 0x7b) {
      depth = Math.max(depth, ++level)
      members++
    } else if (code === 0x5d || code === 0x7d) level--
  }
  return { depth, members }
}

/** The quote that ends a text; most of a message is in texts, and `indexOf` is fast. */
function endOfText(json: string, from: number): number {
  for (let end = json.indexOf('"', from); end >= 0; end = json.indexOf('"', end + 1)) {
    let escapes = 0
    while (end - escapes > from && json.charCodeAt(end - escapes - 1) === backslash) escapes++
    if (escapes % 2 === 0) return end
  }
  return json.length
}
