import type { Task } from '../../../base/core/environment.ts'
import { type Group, type GroupGlance, glanceAt, isHeldOut } from '../../../base/core/group.ts'
import type { Tree } from '../../../base/core/tree.ts'
import { makeFrameBuffer, toJson } from '../../store/frame.ts'
import { makeGathering } from '../../store/gathering.ts'
import { groupRecord } from '../../store/group-record.ts'
import type { NotedTree } from '../../store/journal-index.ts'
import { treeAsSent } from '../../store/later-tree.ts'
import { treeToRunFrame } from '../../store/tree-frame.ts'
import { outcomeName, type RunEvent, type ScoreEnd } from '../../watch/events.ts'
import { countGroup, type GroupFigures } from '../../watch/group-figures.ts'
import { makeCounter, makeSlowest } from '../../watch/tallies.ts'
import { timedLine, toGroupLine, toTreeLine } from '../../watch/telemetry/event-record.ts'
import { countTree } from '../../watch/tree-figures.ts'
import { type ScoreRecord, toScoreRecord } from '../served/score-record.ts'
import type { Served } from '../served/served-run.ts'
import type { SentDetail } from './read-batch.ts'

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
  /** The texts of all pieces one behind another. */
  readonly texts: string
  /** The records of all groups, by themselves: these are kept until the index is written. */
  readonly records: string
  readonly frames: Uint8Array
}

/** What was made for one order: what is read of every piece. */
export interface SentPiece {
  readonly id: number
  readonly size: number
  /** Trees, as they lie in the piece. */
  readonly notes: readonly NotedTree[]
  readonly sampled: number
  readonly outcomes: readonly (readonly [name: string, count: number])[]
  readonly scoringSeconds: number
  /** What happened besides the ends and rewards of trees. */
  readonly events?: readonly RunEvent[]
  /** Characters of its lines of events and of its details, which are JSON that is seldom read. */
  readonly lines: number
  readonly details: number
  readonly group?: SentGroup
}

/** A group that is weighed. */
export interface SentGroup {
  readonly glance: GroupGlance
  readonly figures: GroupFigures
  /** Characters of its line of events and of its record. */
  readonly line: number
  readonly record: number
}

type MadeHere = Extract<Served, { readonly kind: 'made' }>

/** A group that is weighed, as the journal has it. */
export interface WeighedHere {
  readonly group: Group
  readonly task: Task
  readonly order: number
}

/**
 * Milliseconds between two batches of a thread that makes many; what comes alone goes at once. A batch costs the
 * gathering thread about as much as three of its trees.
 */
const between = 16
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

/** A group that is counted and written. */
interface CountedGroup {
  readonly group: Group
  readonly figures: GroupFigures
  readonly record: string
}

/** A piece that grows until its batch is sent. */
class OpenPiece {
  readonly id: number
  /** Where its frames lie among those of the batch. */
  readonly places: FramePlace[] = []
  readonly notes: NotedTree[] = []
  readonly outcomes = makeCounter()
  readonly events: RunEvent[] = []
  readonly scores: ScoreEnd[] = []
  readonly lines: string[] = []
  readonly details: SentDetail['trees'][number][] = []
  group: { readonly sent: SentGroup; readonly line: string; readonly record: string } | undefined
  size = 0
  sampled = 0

  constructor(id: number) {
    this.id = id
  }

  addTree({ tree, place, scores }: EncodedTree, isAlone: boolean): void {
    const sent = treeAsSent(tree)
    const { id, sampled, prompt } = sent.cost
    const ends = tree.trajectories.map(({ outcome, usage }) => ({ outcome, usage }))
    for (const { outcome, usage } of ends) {
      this.sampled += usage.sampled
      this.outcomes.add(outcomeName(outcome))
    }
    this.notes.push([id, this.size, place.size, sampled, prompt])
    this.lines.push(toTreeLine(tree))
    const known = isAlone && { ...sent, figures: countTree(tree) }
    this.details.push({ scores, ends, ...(known && { known }) })
    this.addPlace(place)
  }

  addEvents(events: readonly RunEvent[]): void {
    for (const event of events) {
      if (event.kind === 'score-end') this.scores.push(event)
      else this.events.push(event)
    }
  }

  addGroup({ group, figures, record }: CountedGroup, place: FramePlace): void {
    const line = toGroupLine(group)
    const sent = { glance: glanceAt(group), figures, line: line.length, record: record.length }
    this.group = { sent, line, record }
    this.addPlace(place)
  }

  addPlace(place: FramePlace): void {
    this.places.push(place)
    this.size += place.size
  }

  /** What is sent of it, and its texts behind those of other pieces. */
  close(time: string, texts: string[]): SentPiece {
    const { id, size, notes, sampled, events, scores, group } = this
    const lines = this.lines.map(line => timedLine(line, time)).join('')
    const details = toJson({ trees: this.details, scores } satisfies SentDetail)
    texts.push(lines, details, ...(group ? [group.line] : []))
    return {
      ...{ id, size, notes, sampled, outcomes: this.outcomes.entries() },
      scoringSeconds: scores.reduce((sum, { seconds }) => sum + seconds, 0),
      ...(events.length > 0 && { events }),
      ...{ lines: lines.length, details: details.length },
      ...(group && { group: group.sent }),
    }
  }
}

/** Sends what a thread makes. */
export interface MadePost {
  /** Adds an attempt to what was ordered under this number: itself, or its group. */
  addAttempt(id: number, made: MadeHere, ordered: 'alone' | 'in its group'): void
  /** Adds the group to its attempts. */
  addGroup(id: number, weighed: WeighedHere): void
}

/** Sends what is made a few things together: each message wakes the thread that gathers. */
export function makeMadePost(post: (batch: MadeBatch) => void): MadePost {
  const frames = makeFrameBuffer()
  let open = new Map<number, OpenPiece>()
  let trees = 0
  const gathering = makeGathering<OpenPiece>(between, async pieces => {
    const batch = toBatch(pieces, frames.bytes())
    open = new Map()
    trees = 0
    frames.clear()
    post(batch)
  })

  function pieceOf(id: number): OpenPiece {
    const known = open.get(id)
    if (known) return known
    const piece = new OpenPiece(id)
    open.set(id, piece)
    gathering.add(piece)
    return piece
  }
  function addFrame(frame: Parameters<typeof frames.add>[0]): FramePlace {
    const from = frames.size
    return { from, size: frames.add(frame) }
  }
  /** What could not be among the slowest of the run is not sent as such; held-out tasks are counted apart. */
  const slowest = { learned: makeSlowest(), heldOut: makeSlowest() }
  function count(group: Group): GroupFigures {
    const figures = countGroup(group)
    const kept = isHeldOut(group) ? slowest.heldOut : slowest.learned
    return { ...figures, slowest: figures.slowest.filter(each => kept.add(each)) }
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
      for (const each of encoded) piece.addTree(each, ordered === 'alone')
      piece.addEvents(made.events)
      trees += encoded.length
      flushFull()
    },
    addGroup(id, { group, task, order }) {
      const record = groupRecord(group, task, order)
      const place = addFrame({ header: { kind: 'group', group: record }, arrays: [] })
      pieceOf(id).addGroup({ group, figures: count(group), record: toJson(record) }, place)
      flushFull()
    },
  }
}

/** The batch of these pieces: the frames of each lie together. */
function toBatch(pieces: readonly OpenPiece[], frames: Buffer): MadeBatch {
  const memory = new Uint8Array(pieces.reduce((sum, { size }) => sum + size, 0))
  let end = 0
  for (const { from, size } of pieces.flatMap(({ places }) => places)) {
    memory.set(frames.subarray(from, from + size), end)
    end += size
  }
  const time = new Date().toISOString()
  const texts: string[] = []
  const sent = pieces.map(piece => piece.close(time, texts))
  const records = pieces.map(({ group }) => group?.record ?? '').join('')
  return { kind: 'made', pieces: toJson(sent), texts: texts.join(''), records, frames: memory }
}
