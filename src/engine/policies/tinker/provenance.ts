import { createHash } from 'node:crypto'

/**
 * Where a run of tokens comes from, in Tinker's API: a part of the prompt or of the answer of a
 * sequence that the server sampled.
 */
export interface ProvenanceSpan {
  readonly kind: 'prompt' | 'sampled'
  /** The server's name of that sequence. */
  readonly sequence: string
  readonly offset: number
  readonly length: number
}

/** Which of the server's sequences tokens come from; recorded only after `keep`. */
export interface Provenance {
  /** From now on samples are remembered. */
  keep(): void
  remember(prompt: Int32Array, sampled: Int32Array, sequence: string): void
  /** The spans that tile a row, or undefined if one of its tokens belongs to no known sequence. */
  spansOf(
    ids: Int32Array,
    sampled: readonly { readonly start: number; readonly end: number }[],
  ): readonly ProvenanceSpan[] | undefined
}

interface Sequence {
  readonly name: string
  readonly ids: Int32Array
}

/** Prompts that are remembered; the oldest are forgotten first. */
const mostPrompts = 100_000

/** Opens a memory of samples. */
export function makeProvenance(): Provenance {
  const sequences = new Map<string, readonly Sequence[]>()
  let isKept = false
  return {
    keep() {
      isKept = true
    },
    remember(prompt, ids, name) {
      if (!isKept) return
      const key = digest(prompt)
      const known = sequences.get(key) ?? []
      sequences.delete(key)
      sequences.set(key, [...known, { name, ids }])
      if (sequences.size > mostPrompts) sequences.delete(sequences.keys().next().value!)
    },
    spansOf(ids, sampled) {
      const spans: ProvenanceSpan[] = []
      let at = 0
      for (const { start, end } of sampled) {
        const own = ids.subarray(start, end)
        const found = sequences
          .get(digest(ids.subarray(0, start)))
          ?.find(each => isBeginning(own, each.ids))
        if (!found) return undefined
        const sequence = found.name
        if (start > at) spans.push({ kind: 'prompt', sequence, offset: at, length: start - at })
        spans.push({ kind: 'sampled', sequence, offset: 0, length: end - start })
        at = end
      }
      return at === ids.length ? spans : undefined
    },
  }
}

function digest(ids: Int32Array): string {
  const { buffer, byteOffset, byteLength } = ids
  return createHash('sha1')
    .update(new Uint8Array(buffer, byteOffset, byteLength))
    .digest('base64')
}

function isBeginning(ids: Int32Array, whole: Int32Array): boolean {
  return ids.length <= whole.length && ids.every((id, at) => id === whole[at])
}

/** The part of some spans that covers the tokens `[start, end)`. */
export function cutSpans(
  spans: readonly ProvenanceSpan[],
  start: number,
  end: number,
): readonly ProvenanceSpan[] {
  const cut: ProvenanceSpan[] = []
  let at = 0
  for (const span of spans) {
    const from = Math.max(start, at)
    const to = Math.min(end, at + span.length)
    if (from < to) cut.push({ ...span, offset: span.offset + from - at, length: to - from })
    at += span.length
  }
  return cut
}
