import type { Scored, Unscored } from '../../../base/core/group.ts'
import type { Tree } from '../../../base/core/tree.ts'
import type { NotedTree } from '../../store/journal-index.ts'
import { type LaterTree, laterTree } from '../../store/later-tree.ts'
import { treeFromBytes } from '../../store/tree-frame.ts'
import type { RunEvent, ScoreEnd } from '../../watch/events.ts'
import { type TreeFigures, withFigures } from '../../watch/tree-figures.ts'
import type { MadeGroup, MadeTree, Piece } from '../elsewhere.ts'
import { type ScoreRecord, toMember } from '../served/score-record.ts'
import type { MadeBatch, SentPiece } from './made-batch.ts'

/** What of a piece is only read if something looks into its trees. */
export interface SentDetail {
  readonly trees: readonly {
    readonly scores: readonly ScoreRecord[]
    readonly ends: MadeTree['ends']
    /** What is asked of every tree that comes alone; of those that come with their group hardly any is looked into. */
    readonly known?: LaterTree & { readonly figures: TreeFigures }
  }[]
  readonly scores: readonly ScoreEnd[]
}

/** Where the frames of trees are, if a batch only points to them. */
export interface Frames {
  /** Whether reading one means to ask another machine. */
  isFar(bytes: Buffer): boolean
  whole(bytes: Buffer): Buffer
}

const here: Frames = { isFar: () => false, whole: bytes => bytes }

/** The pieces of a batch; trees are read when they are looked into. */
export function readMadeBatch(
  { pieces, texts, records, frames }: MadeBatch,
  source: Frames = here,
): readonly { readonly id: number; readonly piece: Piece }[] {
  const memory = Buffer.from(frames.buffer, frames.byteOffset, frames.byteLength)
  let [at, text, record] = [0, 0, 0]
  return (JSON.parse(pieces) as readonly SentPiece[]).map(sent => {
    const { id, size, lines, details, group } = sent
    const own = texts.slice(text, text + lines + details + (group?.line ?? 0))
    const written = records.slice(record, record + (group?.record ?? 0))
    const bytes = memory.subarray(at, at + size)
    const piece = new ReadPiece(sent, { bytes, own, written, source })
    at += size
    text += own.length
    record += written.length
    return { id, piece }
  })
}

/** What lies in a batch for one piece. */
interface Sent {
  readonly bytes: Buffer
  readonly own: string
  readonly written: string
  readonly source: Frames
}

/** A piece as a batch of its own, to be sent on as it came. */
export function batchOf(piece: Piece): MadeBatch {
  if (piece instanceof ReadPiece) return piece.asBatch()
  throw new Error('this piece was not sent by a thread')
}

/** The length of what `timedLine` puts before a line, but for the bracket that it takes away. */
const timeLength = '"time":"2000-01-01T00:00:00.000Z",'.length

/** A piece whose details are read once, when something is asked of them. */
class ReadPiece implements Piece {
  readonly kind = 'trees-end'
  readonly bytes: Buffer
  readonly lines: string
  readonly group?: MadeGroup
  readonly #sent: SentPiece
  readonly #own: string
  readonly #source: Frames
  #trees: readonly MadeTree[] | undefined
  #detail: SentDetail | undefined

  constructor(sent: SentPiece, { bytes, own, written, source }: Sent) {
    const { lines, details, group } = sent
    this.#sent = sent
    this.#own = own
    this.#source = source
    this.bytes = bytes
    this.lines = own.slice(0, lines)
    if (group) {
      const { glance, figures } = group
      this.group = { glance, figures, record: written, line: own.slice(lines + details) }
    }
  }

  asBatch(): MadeBatch {
    const pieces = JSON.stringify([this.#sent])
    const records = this.group?.record ?? ''
    return { kind: 'made', pieces, texts: this.#own, records, frames: this.bytes }
  }

  get count(): number {
    return this.#sent.notes.length
  }

  get notes(): readonly NotedTree[] {
    return this.#sent.notes
  }

  get sampled(): number {
    return this.#sent.sampled
  }

  get outcomes(): Piece['outcomes'] {
    return this.#sent.outcomes
  }

  get scoringSeconds(): number {
    return this.#sent.scoringSeconds
  }

  get events(): readonly RunEvent[] {
    return this.#sent.events ?? nothing
  }

  get scores(): readonly ScoreEnd[] {
    return this.#read().scores
  }

  get trees(): readonly MadeTree[] {
    if (this.#trees) return this.#trees
    const lines = this.lines.split('\n')
    this.#trees = this.#sent.notes.map(([, offset, size], index) => {
      const bytes = this.bytes.subarray(offset, offset + size)
      const line = `{${lines[index]!.slice(1 + timeLength)}`
      const place = { bytes, source: this.#source }
      return new ReadTree(place, line, () => this.#read().trees[index]!)
    })
    return this.#trees
  }

  #read(): SentDetail {
    const { lines, details } = this.#sent
    this.#detail ??= JSON.parse(this.#own.slice(lines, lines + details)) as SentDetail
    return this.#detail
  }
}

const nothing: readonly RunEvent[] = []

/** A frame of a tree, or one that points to it. */
interface PlacedFrame {
  readonly bytes: Buffer
  readonly source: Frames
}

/** A tree whose bytes are read once, when something is asked of them. */
class ReadTree implements MadeTree {
  readonly kind = 'tree-end'
  readonly line: string
  readonly isFar: boolean
  readonly #bytes: () => Buffer
  readonly #detail: () => SentDetail['trees'][number]
  #read: Pick<MadeTree, 'tree' | 'members'> | undefined

  constructor(
    { bytes, source }: PlacedFrame,
    line: string,
    detail: () => SentDetail['trees'][number],
  ) {
    this.line = line
    this.isFar = source.isFar(bytes)
    this.#bytes = () => source.whole(bytes)
    this.#detail = detail
  }

  get ends(): MadeTree['ends'] {
    return this.#detail().ends
  }

  get tree(): Tree {
    return this.#whole().tree
  }

  get members(): readonly (Scored | Unscored)[] {
    return this.#whole().members
  }

  #whole(): Pick<MadeTree, 'tree' | 'members'> {
    if (this.#read) return this.#read
    const bytes = this.#bytes
    const { scores, known } = this.#detail()
    const tree = known
      ? withFigures(laterTree(known, bytes), known.figures)
      : treeFromBytes(bytes())
    this.#read = { tree, members: scores.map(score => toMember(score, [tree])) }
    return this.#read
  }
}
