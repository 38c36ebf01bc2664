import type { ImagePlace } from '../../base/core/image.ts'
import { given, type Repeat, type Segment } from '../../base/core/segment.ts'
import type { Trajectory } from '../../base/core/trajectory.ts'
import {
  type Lineage,
  type Place,
  restoreTree,
  type Tree,
  type TreeHeader,
  type TreeNode,
} from '../../base/core/tree.ts'
import { type Frame, type FrameArray, toJson, viewFrame, type WrittenFrame } from './frame.ts'
import { liftCalls, liftMessages } from './long-messages.ts'
import { Lifting, mayHold } from './long-texts.ts'
import {
  addSampled,
  fromSampledRecord,
  type SampledRecord,
  sampledToJson,
} from './segment-record.ts'

/** A node as JSON, with extra fields for sampled segments. */
interface NodeRecord extends Partial<SampledRecord> {
  readonly parent: readonly [node: number, offset: number]
  readonly origin: Segment['origin']
  readonly ids: number
  readonly repeats?: readonly Repeat[]
  readonly images?: readonly ImagePlace[]
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
  const { trajectories } = tree
  const header: TreeRecord = { header: headerOf(tree), nodes, trajectories }
  return { header, arrays }
}

function headerOf({ id, task, member, seat, seed, sampling, tools, renderer }: Tree): TreeHeader {
  const named = seat === undefined ? {} : { seat }
  return { id, task, member, ...named, seed, sampling, tools, renderer }
}

/** A tree as the frame that a run's journal has of it: the same, written by hand if its shape is known. */
export function treeToRunFrame(tree: Tree): WrittenFrame {
  const arrays: FrameArray[] = []
  const leftOut = new Lifting()
  const nodes = nodesToJson(tree.nodes, array => arrays.push(array) - 1)
  const trajectories = toJson(
    tree.trajectories.map((each, index) => liftTrajectory(each, index, leftOut)),
  )
  const json = `{"kind":"tree","tree":{"header":${headerToJson(tree)},"nodes":${nodes},"trajectories":${trajectories}}}`
  return { json, leftOut, arrays }
}

/** The JSON of tools, which all attempts of a run share. */
const toolsJson = new WeakMap<TreeHeader['tools'], string>()

function headerToJson({ id, task, member, seat, seed, sampling, tools, renderer }: Tree): string {
  const first = toJson({ id, task, member, seat, seed, sampling, renderer })
  const known = toolsJson.get(tools) ?? toJson(tools)
  toolsJson.set(tools, known)
  return `${first.slice(0, -1)},"tools":${known}}`
}

/**
 * A trajectory without its long texts: they stand in what was said, and in what a world or an event
 * has to tell. Its fields are named one by one, because spreading them takes as long as writing them.
 */
function liftTrajectory(trajectory: Trajectory, index: number, leftOut: Lifting): object {
  const { id, end, outcome, turns, answer, fidelity, usage, volatile, share } = trajectory
  const { messages, calls, views, report, events } = trajectory
  const at = ['tree', 'trajectories', index] as const
  return {
    id,
    end,
    outcome,
    turns,
    messages: liftMessages(messages, leftOut, ...at, 'messages'),
    views: views && leftOut.lift(views, ...at, 'views'),
    calls: liftCalls(calls, leftOut, ...at, 'calls'),
    report: mayHold(report) ? leftOut.lift(report, ...at, 'report') : report,
    answer,
    fidelity,
    usage,
    events: events.length > 0 ? leftOut.lift(events, ...at, 'events') : events,
    volatile,
    share,
  } satisfies Record<keyof Trajectory, unknown>
}

function nodesToJson(nodes: Tree['nodes'], keep: (array: FrameArray) => number): string {
  let json = ''
  // The root has nothing.
  for (let index = 1; index < nodes.length; index++) {
    json += `${index === 1 ? '' : ','}${nodeToJson(nodes[index]!, keep)}`
  }
  return `[${json}]`
}

/** Nearly all nodes extend a path, and are a few numbers in fixed words. */
function nodeToJson(node: TreeNode, keep: (array: FrameArray) => number): string {
  const { parent, segment, lineage } = node
  if (lineage.kind === 'rewrites' || segment.repeats || segment.images)
    return toJson(toNodeRecord(node, keep))
  const begin = `{"parent":[${parent.node},${parent.offset}],"origin":"${segment.origin}","ids":${keep(segment.ids)}`
  return segment.origin === 'sampled' ? `${begin},${sampledToJson(segment, keep)}}` : `${begin}}`
}

/** The tree of the bytes of such a frame; its tokens stay in their memory. */
export function treeFromBytes(bytes: Buffer): Tree {
  const { header, arrays } = viewFrame(bytes)
  return treeFromFrame({ header: (header as { readonly tree: unknown }).tree, arrays })
}

function toNodeRecord(
  { parent, segment, lineage }: TreeNode,
  keep: (array: FrameArray) => number,
): NodeRecord {
  const record: { -readonly [Key in keyof NodeRecord]: NodeRecord[Key] } = {
    parent: [parent.node, parent.offset],
    origin: segment.origin,
    ids: keep(segment.ids),
  }
  if (lineage.kind === 'rewrites') {
    record.rewrites = { of: lineage.of, by: lineage.by, reason: lineage.reason }
  }
  if (segment.origin === 'sampled') return addSampled(record, segment, keep)
  if (segment.repeats) record.repeats = segment.repeats
  if (segment.images) record.images = segment.images
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
    return given(node.origin, ids, node.repeats, node.images)
  }
  return fromSampledRecord(ids, node as SampledRecord, arrays)
}
