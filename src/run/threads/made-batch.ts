import type { Task } from '../../core/environment.ts'
import type { Group, Scored, Unscored } from '../../core/group.ts'
import type { TreeId } from '../../core/ids.ts'
import type { Usage } from '../../core/trajectory.ts'
import type { Tree } from '../../core/tree.ts'
import { openFrameBuffer, toJson } from '../../store/frame.ts'
import { openGathering } from '../../store/gathering.ts'
import { type GroupRecord, groupRecord } from '../../store/group-record.ts'
import type { TreeCost } from '../../store/journal-index.ts'
import { type LaterTree, laterTree, treeAsSent } from '../../store/later-tree.ts'
import { treeFromBytes, treeToRunFrame } from '../../store/tree-frame.ts'
import type { RunEvent } from '../../watch/events.ts'
import { countGroup } from '../../watch/group-figures.ts'
import { toGroupLine, toTreeLine } from '../../watch/telemetry/event-record.ts'
import { countTree, type TreeFigures, withFigures } from '../../watch/tree-figures.ts'
import type { MadeGroup, MadeTree, Piece } from '../elsewhere.ts'
import { type ScoreRecord, toMember, toScoreRecord } from '../served/score-record.ts'
import type { Served } from '../served/served-run.ts'

/**
 * What one thread has made, for the one that gathers. All that can be done for an attempt or a group alone
 * is done where it was made: trees and groups are the bytes that the journal has of them, one behind
 * another in one piece of memory, and what is asked of them is counted. JSON is read in half the time that
 * a structured clone of the same takes.
 */
export interface MadeBatch {
  readonly kind: 'made'
  /** `SentPiece[]` as JSON. */
  readonly pieces: string
  /** One line each, since most are passed on or never read: of a tree its event and what else is known of it, of a group its event. */
  readonly texts: string
  readonly frames: Uint8Array
}

/** What was made for one order. */
interface SentPiece {
  readonly id: number
  readonly size: number
  readonly trees: readonly SentTree[]
  readonly events: readonly RunEvent[]
  readonly group?: Omit<MadeGroup, 'line'>
}

/** The cost of a tree; its ends where they are not one that is completed at this cost. */
type SentTree = readonly [
  id: TreeId,
  sampled: number,
  prompt: number,
  size: number,
  ends?: MadeTree['ends'],
]

/** What of a tree is read when it is looked into, besides its bytes. */
interface SentDetail {
  readonly scores: readonly ScoreRecord[]
  /** What is asked of every tree that comes alone; of those that come with their group hardly any is looked into. */
  readonly known?: LaterTree & { readonly figures: TreeFigures }
}

type MadeHere = Extract<Served, { readonly kind: 'made' }>

/** A group that is weighed, as the journal has it. */
export interface WeighedHere {
  readonly group: Group
  readonly task: Task
  readonly order: number
}

/** Milliseconds between two batches of a thread that makes many; what comes alone goes at once. */
const between = 4
/** So many trees, or so many bytes of them, do not wait for others. */
const [mostTrees, mostBytes] = [64, 1 << 20]

interface FramePlace {
  readonly from: number
  readonly size: number
}

/** A tree whose frame is among those of the batch. */
interface EncodedTree {
  readonly tree: Tree
  readonly place: FramePlace
  readonly scores: readonly ScoreRecord[]
}

/** A piece that grows until its batch is sent. */
interface OpenPiece {
  readonly id: number
  /** Where its frames lie among those of the batch. */
  readonly places: FramePlace[]
  readonly trees: SentTree[]
  readonly events: RunEvent[]
  readonly texts: string[]
  group?: Omit<MadeGroup, 'line'>
}

/** Sends what a thread makes. */
export interface MadePost {
  /** Adds an attempt to what was ordered under this number: itself, or its group. */
  addAttempt(id: number, made: MadeHere, ordered: 'alone' | 'in its group'): void
  /** Adds the group to its attempts. */
  addGroup(id: number, weighed: WeighedHere): void
}

/** Sends what is made a few things together: each message wakes the thread that gathers. */
export function openMadePost(post: (batch: MadeBatch) => void): MadePost {
  const frames = openFrameBuffer()
  let open = new Map<number, OpenPiece>()
  let trees = 0
  const gathering = openGathering<OpenPiece>(between, async pieces => {
    const batch = toBatch(pieces, frames.bytes())
    open = new Map()
    trees = 0
    frames.clear()
    post(batch)
  })

  function pieceOf(id: number): OpenPiece {
    const known = open.get(id)
    if (known) return known
    const piece: OpenPiece = { id, places: [], trees: [], events: [], texts: [] }
    open.set(id, piece)
    gathering.add(piece)
    return piece
  }
  function addFrame(frame: Parameters<typeof frames.add>[0]): FramePlace {
    const from = frames.size
    return { from, size: frames.add(frame) }
  }
  function addTree(piece: OpenPiece, encoded: EncodedTree, isAlone: boolean): void {
    const { tree, place, scores } = encoded
    const sent = treeAsSent(tree)
    const known = isAlone && { ...sent, figures: countTree(tree) }
    const detail: SentDetail = { scores, ...(known && { known }) }
    piece.places.push(place)
    piece.trees.push(toSentTree(tree, sent.cost, place.size))
    piece.texts.push(toTreeLine(tree), toJson(detail))
    trees++
  }
  const flushFull = (): void => {
    if (trees >= mostTrees || frames.size >= mostBytes) void gathering.flush()
  }
  return {
    addAttempt(id, made, ordered) {
      // A tree that has no form as bytes fails here, before anything is said about its attempt.
      const encoded = made.trees.map((tree): EncodedTree => {
        const scores = made.members.filter(member => member.tree === tree).map(toScoreRecord)
        return { tree, place: addFrame(treeToRunFrame(tree)), scores }
      })
      const piece = pieceOf(id)
      for (const each of encoded) addTree(piece, each, ordered === 'alone')
      piece.events.push(...made.events)
      flushFull()
    },
    addGroup(id, { group, task, order }) {
      const record = groupRecord(group, task, order)
      const place = addFrame({ header: { kind: 'group', group: record }, arrays: [] })
      const piece = pieceOf(id)
      piece.places.push(place)
      piece.group = { record: withoutTask(record), figures: countGroup(group) }
      piece.texts.push(toGroupLine(group))
      flushFull()
    },
  }
}

const completed = { kind: 'completed' } as const

function toSentTree({ trajectories }: Tree, cost: TreeCost, size: number): SentTree {
  const { id, sampled, prompt } = cost
  const ends = trajectories.map(({ outcome, usage }) => ({ outcome, usage }))
  return isUsual(ends, cost) ? [id, sampled, prompt, size] : [id, sampled, prompt, size, ends]
}

/** Whether a tree has one end, which is completed and costs what the tree does. */
function isUsual(ends: MadeTree['ends'], { sampled, prompt }: Usage): boolean {
  return ends.every(
    ({ outcome, usage }, index) =>
      index === 0 &&
      outcome.kind === completed.kind &&
      usage.sampled === sampled &&
      usage.prompt === prompt,
  )
}

function withoutTask({ task: _task, ...record }: GroupRecord): Omit<GroupRecord, 'task'> {
  return record
}

/** The batch of these pieces: the frames of each lie together. */
function toBatch(pieces: readonly OpenPiece[], frames: Buffer): MadeBatch {
  const sizes = pieces.flatMap(({ places }) => places.map(({ size }) => size))
  const memory = new Uint8Array(sizes.reduce((sum, size) => sum + size, 0))
  let end = 0
  const sent = pieces.map(({ id, places, trees, events, group }): SentPiece => {
    const from = end
    for (const place of places) {
      memory.set(frames.subarray(place.from, place.from + place.size), end)
      end += place.size
    }
    return { id, size: end - from, trees, events, ...(group && { group }) }
  })
  const texts = pieces.flatMap(piece => piece.texts).join('\n')
  return { kind: 'made', pieces: toJson(sent), texts, frames: memory }
}

/** The pieces of a batch; trees are read when they are looked into. */
export function readMadeBatch({
  pieces,
  texts,
  frames,
}: MadeBatch): readonly { readonly id: number; readonly piece: Piece }[] {
  const memory = Buffer.from(frames.buffer, frames.byteOffset, frames.byteLength)
  const lines = texts.split('\n')
  let line = 0
  let at = 0
  return (JSON.parse(pieces) as readonly SentPiece[]).map(({ id, size, group, ...sent }) => {
    const bytes = memory.subarray(at, at + size)
    const end = at + size
    const trees = sent.trees.map(([id, sampled, prompt, size, ends]) => {
      const cost = { id, sampled, prompt, size }
      const own = { memory, at, detail: lines[line + 1]! }
      const known = ends ?? [{ outcome: completed, usage: cost }]
      const tree = new ReadTree(cost, known, lines[line]!, own)
      line += 2
      at += size
      return tree
    })
    at = end
    const whole = group && { ...group, line: lines[line++]! }
    return { id, piece: { trees, bytes, events: sent.events, ...(whole && { group: whole }) } }
  })
}

/** Where the bytes of a tree lie, and what else is known of it as JSON. */
interface SentBytes {
  readonly memory: Buffer
  readonly at: number
  readonly detail: string
}

/** A tree whose texts and bytes are read once, when something is asked of them. */
class ReadTree implements MadeTree {
  readonly kind = 'tree-end'
  readonly cost: MadeTree['cost']
  readonly ends: MadeTree['ends']
  readonly line: string
  readonly #sent: SentBytes
  #read: Pick<MadeTree, 'tree' | 'members'> | undefined

  constructor(cost: MadeTree['cost'], ends: MadeTree['ends'], line: string, sent: SentBytes) {
    this.cost = cost
    this.ends = ends
    this.line = line
    this.#sent = sent
  }

  get tree(): Tree {
    return this.#whole().tree
  }

  get members(): readonly (Scored | Unscored)[] {
    return this.#whole().members
  }

  #whole(): Pick<MadeTree, 'tree' | 'members'> {
    if (this.#read) return this.#read
    const { memory, at, detail } = this.#sent
    const bytes = memory.subarray(at, at + this.cost.size)
    const { scores, known } = JSON.parse(detail) as SentDetail
    const tree = known ? withFigures(laterTree(known, bytes), known.figures) : treeFromBytes(bytes)
    this.#read = { tree, members: scores.map(score => toMember(score, [tree])) }
    return this.#read
  }
}
