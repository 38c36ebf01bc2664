import type { Task } from '../../core/environment.ts'
import type { Group, Scored, Unscored } from '../../core/group.ts'
import type { Tree } from '../../core/tree.ts'
import { openFrameBuffer, toJson } from '../../store/frame.ts'
import { openGathering } from '../../store/gathering.ts'
import { type GroupRecord, groupRecord } from '../../store/group-record.ts'
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

type SentTree = Pick<MadeTree, 'cost' | 'ends'>

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
    const ends = tree.trajectories.map(({ outcome, usage }) => ({ outcome, usage }))
    piece.places.push(place)
    piece.trees.push({ cost: { ...sent.cost, size: place.size }, ends })
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
    const trees = sent.trees.map(({ cost, ends }) => {
      const own = { bytes: memory.subarray(at, at + cost.size), detail: lines[line + 1]! }
      const tree = new ReadTree(cost, ends, lines[line]!, own)
      line += 2
      at += cost.size
      return tree
    })
    at = end
    const whole = group && { ...group, line: lines[line++]! }
    return { id, piece: { trees, bytes, events: sent.events, ...(whole && { group: whole }) } }
  })
}

/** A tree whose texts and bytes are read once, when something is asked of them. */
class ReadTree implements MadeTree {
  readonly cost: MadeTree['cost']
  readonly ends: MadeTree['ends']
  readonly line: string
  readonly #sent: { readonly bytes: Buffer; readonly detail: string }
  #read: Pick<MadeTree, 'tree' | 'members'> | undefined

  constructor(
    cost: MadeTree['cost'],
    ends: MadeTree['ends'],
    line: string,
    sent: { readonly bytes: Buffer; readonly detail: string },
  ) {
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
    const { bytes, detail } = this.#sent
    const { scores, known } = JSON.parse(detail) as SentDetail
    const tree = known ? withFigures(laterTree(known, bytes), known.figures) : treeFromBytes(bytes)
    this.#read = { tree, members: scores.map(score => toMember(score, [tree])) }
    return this.#read
  }
}
