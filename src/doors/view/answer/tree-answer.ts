import { coverageOf } from '../../../base/core/credit.ts'
import type { Segment } from '../../../base/core/segment.ts'
import { pathEnds, pathTo, type Tree } from '../../../base/core/tree.ts'
import { shorten } from '../index/facts.ts'
import { type LoadedGroup, memberRow } from '../index/stored-group.ts'
import type { BranchAnswer, TreeAnswer, TreeNodeAnswer } from '../trajectory-shapes.ts'
import type { TokenTexts } from './token-texts.ts'
import type { Credits } from './trajectory-answer.ts'

/** A tree as the page draws it. */
export function treeAnswer(
  tree: Tree,
  group: LoadedGroup,
  {
    credits,
    texts,
    branch,
  }: { readonly credits: Credits; readonly texts: TokenTexts; readonly branch: string },
): TreeAnswer {
  const members = group.members.filter(member => member.tree.id === tree.id)
  const coverage = members.map(({ trajectory }) => coverageOf(tree, trajectory))
  const nodes = tree.nodes
    .slice(1)
    .map(({ segment, parent, start, lineage }, index): TreeNodeAnswer => {
      const node = index + 1
      return {
        node,
        parent: [parent.node, parent.offset],
        origin: segment.origin,
        start,
        length: segment.ids.length,
        text: shorten(texts.join(segment.ids.subarray(0, 400)), 400),
        ...(segment.version && { version: [segment.version.from, segment.version.to] as const }),
        ...meansOf(segment),
        advantage: credits.get(node)?.[0]?.advantage ?? null,
        ...(lineage.kind === 'rewrites' && {
          rewrite: {
            of: [lineage.of.node, lineage.of.offset] as const,
            by: lineage.by,
            reason: lineage.reason,
          },
        }),
        endings: coverage.flatMap((each, ending) => (each.has(node) ? ending : [])),
      }
    })
  return {
    id: tree.id,
    group: group.record.id,
    task: group.record.task.id,
    nodes,
    branches: branchesOf(tree, branch, texts),
    endings: members.map(member => {
      const { end, share } = member.trajectory
      const ends = pathEnds(tree, end)
      const on = (place: typeof end): readonly number[] =>
        pathTo(tree, place).map(({ node }) => node)
      const path = on(end)
      const replaced = ends
        .slice(0, -1)
        .flatMap(on)
        .filter(node => !path.includes(node))
      return {
        ...memberRow(member),
        end: [end.node, end.offset],
        share,
        path,
        replaced: [...new Set(replaced)],
      }
    }),
  }
}

function meansOf({
  logprobs,
  ...segment
}: Segment): Pick<TreeNodeAnswer, 'meanLogprob' | 'meanEntropy'> {
  const entropies = segment.origin === 'sampled' ? segment.entropies : undefined
  return { meanLogprob: meanOf(logprobs), meanEntropy: meanOf(entropies) }
}

function meanOf(values: Float32Array | null | undefined): number | null {
  if (!values || values.length === 0) return null
  let sum = 0
  for (const value of values) sum += value
  return sum / values.length
}

/** Places from which several paths go on, and why the strategy went on there. */
function branchesOf(tree: Tree, branch: string, texts: TokenTexts): readonly BranchAnswer[] {
  const places = new Map<string, { node: number; offset: number; children: number[] }>()
  tree.nodes.forEach(({ parent, lineage }, node) => {
    if (node === 0 || lineage.kind === 'rewrites') return
    const key = `${parent.node}:${parent.offset}`
    const place = places.get(key) ?? { ...parent, children: [] }
    place.children.push(node)
    places.set(key, place)
  })
  const splits = [...places.values()].filter(({ node, offset, children }) => {
    const goesOn = node !== 0 && offset < tree.nodes[node]!.segment.ids.length
    return children.length + Number(goesOn) > 1
  })
  return splits.map(({ node, offset, children }) => {
    const { start, segment } = tree.nodes[node]!
    const isInside = node !== 0 && offset < segment.ids.length
    return {
      node,
      offset,
      at: start + offset,
      turn: turnAt(tree, node, offset),
      width: children.length + Number(isInside),
      why: whyOf(branch, isInside),
      ways: waysOf(tree, { node, offset, children, isInside }, texts),
    }
  })
}

/** Why each strategy goes on from a place. */
const reasons: Readonly<Record<string, string>> = {
  arpo: 'entropy rose after a tool answered',
  'best-first': 'the endings below promised most',
  fixed: 'every turn of this depth is continued as often',
  'tool-error': 'a tool had answered with an error',
  'tree-grpo': 'a turn of the finished tree was drawn at random',
  'tree-rl': 'the next token surprised most',
}

function whyOf(branch: string, isInside: boolean): string {
  const [name = branch] = branch.split(':')
  const reason = Object.hasOwn(reasons, name) ? `: ${reasons[name]}` : ''
  return `${branch}${reason}; ${isInside ? 'inside a turn' : 'before a turn'}`
}

/** A place from which several paths go on. */
interface Split {
  readonly node: number
  readonly offset: number
  readonly children: readonly number[]
  readonly isInside: boolean
}

/** The beginnings of the ways on from a place. */
function waysOf(tree: Tree, split: Split, texts: TokenTexts): readonly string[] {
  const { node, offset, children, isInside } = split
  const starts = children.map(child => tree.nodes[child]!.segment.ids)
  if (isInside) starts.unshift(tree.nodes[node]!.segment.ids.subarray(offset))
  return starts.map(ids => shorten(texts.join(ids.subarray(0, 24)), 60))
}

/** How many turns were sampled before a place. */
function turnAt(tree: Tree, node: number, offset: number): number {
  const spans = pathTo(tree, { node, offset })
  const isInside = offset < tree.nodes[node]!.segment.ids.length
  return spans.filter((span, index) => {
    const isLast = index === spans.length - 1
    return tree.nodes[span.node]!.segment.origin === 'sampled' && !(isLast && isInside)
  }).length
}
