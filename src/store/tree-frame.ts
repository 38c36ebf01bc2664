import {
  type LogprobBasis,
  type Repeat,
  type Segment,
  sampled,
  type VersionRange,
} from '../core/segment.ts'
import type { Trajectory } from '../core/trajectory.ts'
import { type Lineage, type Place, restoreTree, type Tree, type TreeHeader } from '../core/tree.ts'
import type { Frame, FrameArray } from './frame.ts'

interface NodeRecord {
  readonly parent: readonly [node: number, offset: number]
  readonly origin: Segment['origin']
  readonly ids: number
  readonly repeats?: readonly Repeat[]
  readonly logprobs?: number
  readonly basis?: LogprobBasis
  readonly version?: VersionRange
  readonly entropies?: number
  readonly top?: readonly [width: number, ids: number, logprobs: number]
  readonly rewrites?: { readonly of: Place; readonly by: string; readonly reason: string }
}

interface TreeRecord {
  readonly header: TreeHeader
  readonly nodes: readonly NodeRecord[]
  readonly trajectories: readonly Trajectory[]
}

/** A tree as a frame: tokens and numbers as arrays, all else as JSON. */
export function treeToFrame(tree: Tree): Frame {
  const arrays: FrameArray[] = []
  const keep = (array: FrameArray): number => arrays.push(array) - 1
  const nodes = tree.nodes.slice(1).map(({ parent, segment, lineage }): NodeRecord => {
    const common = {
      parent: [parent.node, parent.offset] as const,
      origin: segment.origin,
      ids: keep(segment.ids),
      ...(lineage.kind === 'rewrites' && {
        rewrites: { of: lineage.of, by: lineage.by, reason: lineage.reason },
      }),
    }
    if (segment.origin !== 'sampled') {
      return segment.repeats ? { ...common, repeats: segment.repeats } : common
    }
    const { logprobs, basis, version, entropies, top } = segment
    return {
      ...common,
      basis,
      version,
      ...(logprobs && { logprobs: keep(logprobs) }),
      ...(entropies && { entropies: keep(entropies) }),
      ...(top && { top: [top.width, keep(top.ids), keep(top.logprobs)] as const }),
    }
  })
  const { id, task, member, seed, sampling, tools, renderer, trajectories } = tree
  const header: TreeRecord = {
    header: { id, task, member, seed, sampling, tools, renderer },
    nodes,
    trajectories,
  }
  return { header, arrays }
}

/** The tree that a frame holds; lengths and places are checked again as it is rebuilt. */
export function treeFromFrame({ header, arrays }: Frame): Tree {
  const record = header as TreeRecord
  const nodes = record.nodes.map(node => ({
    parent: { node: node.parent[0], offset: node.parent[1] },
    segment: toSegment(node, arrays),
    lineage: (node.rewrites
      ? { kind: 'rewrites', ...node.rewrites }
      : { kind: 'extends' }) satisfies Lineage,
  }))
  return restoreTree(record.header, nodes, record.trajectories)
}

function toSegment(node: NodeRecord, arrays: readonly FrameArray[]): Segment {
  const ids = arrays[node.ids] as Int32Array
  if (node.origin !== 'sampled') {
    return { origin: node.origin, ids, ...(node.repeats && { repeats: node.repeats }) }
  }
  return sampled({
    ids,
    logprobs: node.logprobs === undefined ? null : (arrays[node.logprobs] as Float32Array),
    basis: node.basis!,
    version: node.version!,
    ...(node.entropies !== undefined && { entropies: arrays[node.entropies] as Float32Array }),
    ...(node.top && {
      top: {
        width: node.top[0],
        ids: arrays[node.top[1]] as Int32Array,
        logprobs: arrays[node.top[2]] as Float32Array,
      },
    }),
  })
}
