import type { Repeat, Segment } from '../core/segment.ts'
import type { Trajectory } from '../core/trajectory.ts'
import {
  type Lineage,
  type Place,
  restoreTree,
  type Tree,
  type TreeHeader,
  type TreeNode,
} from '../core/tree.ts'
import { type Frame, type FrameArray, viewFrame } from './frame.ts'
import { addSampled, fromSampledRecord, type SampledRecord } from './segment-record.ts'

/** A node as JSON, with extra fields for sampled segments. */
interface NodeRecord extends Partial<SampledRecord> {
  readonly parent: readonly [node: number, offset: number]
  readonly origin: Segment['origin']
  readonly ids: number
  readonly repeats?: readonly Repeat[]
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
  const nodes = tree.nodes.slice(1).map(node => toNodeRecord(node, keep))
  const { id, task, member, seat, seed, sampling, tools, renderer, trajectories } = tree
  const named = seat === undefined ? {} : { seat }
  const header: TreeRecord = {
    header: { id, task, member, ...named, seed, sampling, tools, renderer },
    nodes,
    trajectories,
  }
  return { header, arrays }
}

/** A tree as the frame that a run's journal has of it. */
export function treeToRunFrame(tree: Tree): Frame {
  const { header, arrays } = treeToFrame(tree)
  return { header: { kind: 'tree', tree: header }, arrays }
}

/** The tree of the bytes of such a frame; its tokens stay in their memory. */
export function treeFromBytes(bytes: Buffer): Tree {
  const { header, arrays } = viewFrame(bytes)
  return treeFromFrame({ header: (header as { readonly tree: unknown }).tree, arrays })
}

/** A node that extends a path. A class, so that nobody looks for long texts in it: there are none. */
class PlainNode implements NodeRecord {
  readonly parent: NodeRecord['parent']
  readonly origin: NodeRecord['origin']
  readonly ids: number

  constructor(parent: NodeRecord['parent'], origin: NodeRecord['origin'], ids: number) {
    this.parent = parent
    this.origin = origin
    this.ids = ids
  }
}

function toNodeRecord(
  { parent, segment, lineage }: TreeNode,
  keep: (array: FrameArray) => number,
): NodeRecord {
  const place = [parent.node, parent.offset] as const
  const plain = new PlainNode(place, segment.origin, keep(segment.ids))
  const record: { -readonly [Key in keyof NodeRecord]: NodeRecord[Key] } =
    lineage.kind === 'rewrites'
      ? { ...plain, rewrites: { of: lineage.of, by: lineage.by, reason: lineage.reason } }
      : plain
  if (segment.origin === 'sampled') return addSampled(record, segment, keep)
  if (segment.repeats) record.repeats = segment.repeats
  return record
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
  return fromSampledRecord(ids, node as SampledRecord, arrays)
}
