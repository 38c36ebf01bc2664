import { imagesTo } from '../../../base/core/image.ts'
import type { SampledSegment } from '../../../base/core/segment.ts'
import type { Trajectory } from '../../../base/core/trajectory.ts'
import { lengthTo, pathEnds, pathTo, type Tree, type TreeNode } from '../../../base/core/tree.ts'
import type { Candidate, TokenPage } from '../trajectory-shapes.ts'
import { imageRunsOn } from './image-runs.ts'
import type { TokenTexts } from './token-texts.ts'
import type { Credits } from './trajectory-answer.ts'

const origins = { prompt: 0, observed: 1, sampled: 2 } as const

/** Which tokens are wanted. */
export interface TokenQuery {
  readonly path: number
  readonly offset: number
  readonly limit: number
}

type Columns = {
  -readonly [Name in keyof Omit<
    TokenPage,
    'path' | 'total' | 'offset' | 'images'
  >]: TokenPage[Name][number][]
}

/** A page of the tokens on one of a trajectory's paths. */
export function tokenPage(
  tree: Tree,
  trajectory: Trajectory,
  {
    query,
    credits,
    texts,
  }: { readonly query: TokenQuery; readonly credits: Credits; readonly texts: TokenTexts },
): TokenPage {
  const ends = pathEnds(tree, trajectory.end)
  const path = Math.min(Math.max(0, query.path), ends.length - 1)
  const end = ends[path]!
  const total = lengthTo(tree, end)
  const low = Math.min(Math.max(0, query.offset), total)
  const high = Math.min(total, low + query.limit)
  const columns: Columns = {
    ids: [],
    texts: [],
    controls: [],
    origins: [],
    trained: [],
    logprobs: [],
    entropies: [],
    advantages: [],
    versions: [],
    repeats: [],
    top: [],
  }
  for (const span of pathTo(tree, end)) {
    const from = Math.max(low, span.start) - span.start
    const to = Math.min(high, span.start + span.length) - span.start
    const node = tree.nodes[span.node]!
    const credit = makeCredit(credits, span.node)
    for (let at = from; at < to; at++) addToken(columns, node, { at, texts, credit: credit(at) })
  }
  const shown = imagesTo(tree, end).map(({ start, end, width, height }, index) => {
    return { number: index + 1, start, end, width, height }
  })
  const images = imageRunsOn(shown, low, high)
  return { path, total, offset: low, ...columns, images }
}

interface TokenPlace {
  readonly at: number
  readonly texts: TokenTexts
  readonly credit: number | null
}

function addToken(
  columns: Columns,
  { segment }: TreeNode,
  { at, texts, credit }: TokenPlace,
): void {
  const id = segment.ids[at]!
  const { text, isControl } = texts.of(id)
  columns.ids.push(id)
  columns.texts.push(text)
  columns.controls.push(isControl)
  columns.origins.push(origins[segment.origin])
  columns.advantages.push(credit)
  columns.trained.push(credit !== null)
  columns.repeats.push(segment.repeats?.some(({ start, end }) => start <= at && at < end) ?? false)
  if (segment.origin !== 'sampled') {
    columns.logprobs.push(null)
    columns.entropies.push(null)
    columns.versions.push(null)
    columns.top.push(null)
    return
  }
  columns.logprobs.push(segment.logprobs?.[at] ?? null)
  columns.entropies.push(segment.entropies?.[at] ?? null)
  columns.versions.push([segment.version.from, segment.version.to])
  columns.top.push(segment.top ? candidatesAt(segment, at, texts) : null)
}

/** The most probable tokens at a sampled place. */
function candidatesAt(
  { top }: SampledSegment,
  at: number,
  texts: TokenTexts,
): readonly Candidate[] {
  if (!top) return []
  return Array.from({ length: top.width }, (_, rank) => {
    const place = at * top.width + rank
    const id = top.ids[place]!
    return { id, text: texts.of(id).text ?? String(id), logprob: top.logprobs[place]! }
  })
}

/** The advantage of each token of a node; `null` if it is not trained. */
function makeCredit(credits: Credits, node: number): (at: number) => number | null {
  const spans = credits.get(node) ?? []
  let next = 0
  return at => {
    while (next < spans.length && spans[next]!.end <= at) next++
    const span = spans[next]
    return span && span.start <= at && span.weight !== 0 ? span.advantage : null
  }
}
