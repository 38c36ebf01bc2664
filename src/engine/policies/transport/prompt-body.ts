/** What stands before and behind the ids in a body. */
export interface BodyFrame {
  readonly head: string
  readonly tail: string
}

/** An id has at most ten digits, and a comma before it. */
const widestId = 11

const zero = 48
const comma = 44

/** `head`, the ids with commas between them, `tail`: `join` would take many times as long for a long prompt. */
export function promptBody(ids: Int32Array, { head, tail }: BodyFrame): Buffer {
  const before = Buffer.from(head)
  const behind = Buffer.from(tail)
  const body = Buffer.allocUnsafe(before.length + ids.length * widestId + behind.length)
  let at = before.copy(body)
  for (let index = 0; index < ids.length; index++) {
    const id = ids[index]!
    if (id < 0) throw new RangeError(`Token ${index} of the prompt is ${id}, not a token id.`)
    if (index > 0) body[at++] = comma
    at = writeId(body, at, id)
  }
  at += behind.copy(body, at)
  return body.subarray(0, at)
}

function writeId(body: Buffer, at: number, id: number): number {
  let width = 1
  for (let least = 10; id >= least; least *= 10) width++
  const end = at + width
  for (let place = end - 1, left = id; place >= at; place--) {
    const tens = (left / 10) | 0
    body[place] = zero + left - tens * 10
    left = tens
  }
  return end
}
