import type { Tree } from '../../core/tree.ts'
import { openFrameBuffer, toJson } from '../../store/frame.ts'
import { openGathering } from '../../store/gathering.ts'
import { type LaterTree, laterTree, treeAsSent } from '../../store/later-tree.ts'
import { treeToRunFrame } from '../../store/tree-frame.ts'
import type { RunEvent } from '../../watch/events.ts'
import { toTreeLine } from '../../watch/telemetry/event-record.ts'
import { countTree, type TreeFigures, withFigures } from '../../watch/tree-figures.ts'
import type { Made } from '../elsewhere.ts'
import { type ScoreRecord, toMember, toScoreRecord } from '../served/score-record.ts'
import type { Served } from '../served/served-run.ts'

/**
 * Attempts that one thread has made, for the one that gathers. All that can be done for an attempt alone
 * is done where it was made: its trees are the bytes that the journal has of them, one behind another in
 * one piece of memory, and what is asked of them is counted. JSON is read in half the time that a
 * structured clone of the same takes.
 */
export interface MadeBatch {
  readonly kind: 'made'
  /** `SentAttempt[]` as JSON. */
  readonly attempts: string
  /** The lines of `events.jsonl` of all trees: quoted within JSON, they would take as long as the rest. */
  readonly lines: string
  readonly frames: Uint8Array
}

interface SentAttempt {
  /** What it was ordered under. */
  readonly id: number
  readonly trees: readonly SentTreeRecord[]
  readonly scores: readonly ScoreRecord[]
  readonly events: readonly RunEvent[]
}

/** A tree of it: what is asked first, and where its bytes lie. */
interface SentTreeRecord extends LaterTree {
  readonly from: number
  readonly size: number
  /** Which of the lines is its own. */
  readonly line: number
  readonly figures: TreeFigures
}

type MadeHere = Extract<Served, { readonly kind: 'made' }>

/** Milliseconds between two batches of a thread that makes many; what comes alone goes at once. */
const between = 4
/** So many attempts, or so many bytes of them, do not wait for others. */
const [mostAttempts, mostBytes] = [64, 1 << 20]

/** Sends attempts a few together: each message wakes the thread that gathers. */
export function openMadePost(
  post: (batch: MadeBatch) => void,
): (id: number, made: MadeHere) => void {
  const frames = openFrameBuffer()
  let lines: string[] = []
  let waiting = 0

  function addTree(tree: Tree): SentTreeRecord {
    const from = frames.size
    const size = frames.add(treeToRunFrame(tree))
    const line = lines.push(toTreeLine(tree)) - 1
    return { ...treeAsSent(tree), from, size, line, figures: countTree(tree) }
  }
  const gathering = openGathering<SentAttempt>(between, async attempts => {
    const texts = { attempts: toJson(attempts), lines: lines.join('\n') }
    const bytes = new Uint8Array(frames.bytes())
    lines = []
    waiting = 0
    frames.clear()
    post({ kind: 'made', ...texts, frames: bytes })
  })
  return (id, { trees, members, events }) => {
    const sent = trees.map(addTree)
    gathering.add({ id, trees: sent, scores: members.map(toScoreRecord), events })
    if (++waiting >= mostAttempts || frames.size >= mostBytes) void gathering.flush()
  }
}

/** The attempts of a batch; their trees are read when they are looked into. */
export function readMadeBatch({
  attempts,
  lines: joined,
  frames,
}: MadeBatch): readonly { readonly id: number; readonly made: Made }[] {
  const memory = Buffer.from(frames.buffer, frames.byteOffset, frames.byteLength)
  const all = joined.split('\n')
  return (JSON.parse(attempts) as readonly SentAttempt[]).map(({ id, trees, scores, events }) => {
    const sent = trees.map(({ from, size, cost }) => ({
      bytes: memory.subarray(from, from + size),
      cost,
    }))
    const read = trees.map((tree, index) =>
      withFigures(laterTree(tree, sent[index]!.bytes), tree.figures),
    )
    const lines = trees.map(({ line }) => all[line]!)
    const members = scores.map(score => toMember(score, read))
    return { id, made: { kind: 'made', trees: read, sent, lines, members, events } }
  })
}
