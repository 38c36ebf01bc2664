import type { Span, Tree } from './tree.ts'

/**
 * Which experts of a mixture served the tokens of a sample: a row of `layers` × `top` numbers for every token that was
 * read, from `before` tokens before the sample to its last token but one. The last one is read by the next sample, if any.
 */
export interface RoutedExperts {
  readonly layers: number
  /** Experts per layer and token. */
  readonly top: number
  readonly before: number
  readonly data: ExpertNumbers
}

/** Numbers of experts, in as few bytes as they need. */
export type ExpertNumbers = Uint8Array | Uint16Array

/** The experts of a row's tokens, one row of numbers per token. */
export interface RowExperts extends Pick<RoutedExperts, 'layers' | 'top' | 'data'> {
  /** How many tokens, from the start, have known experts; the rest are fillers and must not be trained on. */
  readonly known: number
}

/** Throws if the numbers of experts do not match the number of tokens. */
export function checkExperts({ layers, top, before, data }: RoutedExperts, ids: number): void {
  const rows = before + Math.max(0, ids - 1)
  if (before >= 0 && data.length === rows * layers * top) return
  throw new RangeError(
    `sampled segment of ${ids} ids has experts for ${data.length / (layers * top)} tokens, not ${rows}`,
  )
}

/** How many tokens of a path, from its start, have known experts: the next sample has to report those after. */
export function expertsKnown(tree: Pick<Tree, 'nodes'>, spans: readonly Span[]): number {
  let known = 0
  for (const { node, start, length } of spans) {
    const { segment } = tree.nodes[node]!
    const experts = segment.origin === 'sampled' ? segment.experts : undefined
    if (!experts || start - experts.before > known) continue
    known = Math.max(known, Math.min(start + length, start + segment.ids.length - 1))
  }
  return known
}

/** The experts of all tokens of a path; `undefined` if no sample on it reported any. */
export function expertsOf(
  tree: Pick<Tree, 'nodes'>,
  spans: readonly Span[],
  size: number,
): RowExperts | undefined {
  const isTold = spans.some(({ node }) => tree.nodes[node]!.segment.experts !== undefined)
  if (!isTold) return undefined
  const told = spans.flatMap(span => {
    const { segment } = tree.nodes[span.node]!
    return segment.origin === 'sampled' && segment.experts
      ? [{ ...span, experts: segment.experts }]
      : []
  })
  const [first] = told
  if (!first) return undefined
  const { layers, top } = first.experts
  const width = layers * top
  const isWide = told.some(({ experts }) => experts.data instanceof Uint16Array)
  const data = isWide ? new Uint16Array(size * width) : new Uint8Array(size * width)
  // Fill unknown ones with distinct experts, so that a replay never routes a token twice to one expert.
  for (let at = 0; at < data.length; at++) data[at] = at % top
  for (const { start, length, experts } of told) {
    const from = start - experts.before
    const rows = Math.min(experts.data.length / width, start + length - from)
    data.set(experts.data.subarray(0, rows * width), from * width)
  }
  return { layers, top, data, known: expertsKnown(tree, spans) }
}
