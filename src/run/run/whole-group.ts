import { type Group, type Unscored, withGlance } from '../../base/core/group.ts'
import { type TrajectoryId, type TreeId, treeId } from '../../base/core/ids.ts'
import type { Gradable, Trajectory, Usage } from '../../base/core/trajectory.ts'
import type { Tree } from '../../base/core/tree.ts'
import { type GroupRecord, recordedCredit } from '../store/group-record.ts'
import type { NotedTree } from '../store/journal-index.ts'
import { tellTogether } from '../watch/events.ts'
import { withGroupFigures } from '../watch/group-figures.ts'
import type { Loan } from './budget.ts'
import type { Elsewhere, GroupWork, MadeGroup, MadeTree, Piece } from './elsewhere.ts'
import type { Job, PipelineOptions } from './pipeline.ts'

/** What came of having a group made in one place. */
export type Begun =
  | { readonly kind: 'whole'; readonly group: Group }
  | {
      readonly kind: 'attempts'
      /** Trees that are made and kept; the others are made one by one. */
      readonly kept: ReadonlyMap<TreeId, Pick<MadeTree, 'members'>>
      /** How often the others were in the hands of somebody who is gone. */
      readonly tries: number
    }

const nothing: Begun = { kind: 'attempts', kept: new Map(), tries: 0 }

/**
 * Has a group made and weighed in one place if that can be done, so that little is left to do here: what
 * comes is appended to the journal as it is, and read if something looks into it.
 */
export async function rollWhole(
  job: Job,
  options: PipelineOptions,
  over: (attempts: number) => void,
): Promise<Begun> {
  const { elsewhere, group: members } = options
  const loan = canBeWhole(job, options) && lease(options)
  if (loan === false) return nothing
  const kept = findKept(job, options)
  let left = members
  const end = (attempts: number): void => {
    left -= attempts
    over(attempts)
  }
  try {
    return await makeWhole({ job, options, loan, kept, end }, elsewhere!)
  } catch (error) {
    await kept.written().catch(() => undefined)
    end(left)
    throw error
  } finally {
    loan?.settle(kept.usage())
  }
}

function canBeWhole(job: Job, options: PipelineOptions): boolean {
  const { elsewhere, context, group, known, lend, lease: leased } = options
  if (!elsewhere?.makeGroup || elsewhere.isOpen === false) return false
  // Seats make several groups of the same attempts.
  if (context.environment.seats || (lend && !leased) || !elsewhere.weighs?.(options)) return false
  const members = Array.from({ length: group }, (_, member) => treeId(job.id, member))
  return !known || !members.some(id => known.has(id))
}

function lease({ lease: leased, context, leaves = 1, group }: PipelineOptions) {
  return leased?.({ limits: context.limits, leaves: leaves * group })
}

interface Making {
  readonly job: Job
  readonly options: PipelineOptions
  readonly loan: Loan | undefined
  readonly kept: Kept
  /** Called when so many attempts have ended. */
  end(attempts: number): void
}

async function makeWhole(making: Making, elsewhere: Elsewhere): Promise<Begun> {
  const { job, options, loan, kept, end } = making
  const { signal, group: members, listen } = options
  const keep = (piece: Piece): Promise<void> => kept.add(piece, () => end(piece.count))
  const returned = await elsewhere.makeGroup!(workOf(job, options, loan), {
    signal,
    onBegin() {
      job.onBegin?.()
      tellTogether(listen, { kind: 'attempts-start', task: job.task.id, members })
    },
    onPiece: keep,
  })
  if (returned.kind === 'spent') throw loan!.end(returned.of)
  if (returned.kind === 'spread') return nothing
  if (returned.kind === 'broken') {
    await kept.written()
    elsewhere.taken(job.id)
    return { kind: 'attempts', kept: kept.trees(), tries: returned.tries }
  }
  void keep(returned.piece)
  await kept.written()
  elsewhere.taken(job.id)
  signal.throwIfAborted()
  const group = kept.group()!
  listen?.({ kind: 'group-end', group, line: returned.piece.group!.line })
  return { kind: 'whole', group }
}

function workOf(
  { id: group, task, order, step }: Job,
  { group: members, context, seed, endpoint }: PipelineOptions,
  loan: Loan | undefined,
): GroupWork {
  const { sampling, limits, examples } = context
  return {
    ...{ group, members, task, order, seed, sampling, limits },
    ...(step !== undefined && { step }),
    ...(loan && { allowance: loan.allowance }),
    ...(endpoint !== undefined && { endpoint }),
    ...(examples && { examples: examples.now }),
  }
}

/** What came of a group so far. */
interface Kept {
  trees(): ReadonlyMap<TreeId, MadeTree>
  /** What it cost. */
  usage(): Usage
  /** The group, once its piece has come. */
  group(): Group | undefined
  /** Keeps a piece, in the journal first; then its observers hear of it, and `done` is called. */
  add(piece: Piece, done: () => void): Promise<void>
  /** Resolves when all of it is kept. */
  written(): Promise<void>
}

function findKept(job: Job, { writer, unfinished, listen }: PipelineOptions): Kept {
  const pieces: Piece[] = []
  const writing: Promise<void>[] = []
  let group: Group | undefined
  let known: ReadonlyMap<TreeId, MadeTree> | undefined
  const trees = (): ReadonlyMap<TreeId, MadeTree> => {
    known ??= new Map(
      pieces.flatMap(piece => piece.trees.map((tree, at) => [idAt(piece, at), tree])),
    )
    return known
  }

  async function keep(piece: Piece): Promise<void> {
    const { bytes, notes, group: made } = piece
    const { task, order } = job
    const whole = made && { record: made.record, stored: { group: group!, task, order } }
    await writer?.writeSent({ bytes, notes, ...(whole && { group: whole }) })
    if (unfinished) for (const [id] of piece.notes) unfinished.forget(id)
    tellTogether(listen, piece)
    for (const event of piece.events) listen?.(event)
  }
  return {
    trees,
    usage: () => sumNotes(pieces.flatMap(({ notes }) => notes)),
    group: () => group,
    add(piece, done) {
      pieces.push(piece)
      if (piece.group) group = readGroup(job, piece.group, trees)
      const kept = keep(piece).then(done)
      kept.catch(() => undefined)
      writing.push(kept)
      return kept
    },
    async written() {
      await Promise.allSettled(writing)
      await Promise.all(writing)
    },
  }
}

const idAt = ({ notes }: Piece, at: number): TreeId => notes[at]![0]

/** The group that was weighed elsewhere; its record and its trees are read when they are looked into. */
function readGroup(
  { id, task, step }: Job,
  { record, glance, figures }: MadeGroup,
  trees: () => ReadonlyMap<TreeId, MadeTree>,
): Group {
  let whole: Pick<Group, 'members' | 'unscored'> | undefined
  const read = (): Pick<Group, 'members' | 'unscored'> => {
    whole ??= readMembers(JSON.parse(record) as GroupRecord, trees())
    return whole
  }
  const group: Group = {
    id,
    task: task.id,
    ...(step !== undefined && { step }),
    get members() {
      return read().members
    },
    unscored: glance.unscored === 0 ? [] : read().unscored,
  }
  return withGlance(withGroupFigures(group, figures), glance)
}

function readMembers(
  { members, unscored }: GroupRecord,
  trees: ReadonlyMap<TreeId, MadeTree>,
): Pick<Group, 'members' | 'unscored'> {
  const find = (trajectory: TrajectoryId): MadeTree =>
    trees.get(trajectory.slice(0, trajectory.lastIndexOf('/')) as TreeId)!
  return {
    members: members.map(member => {
      const { trajectory } = member
      const credit = recordedCredit(member)
      return later<Gradable, typeof credit>(find(trajectory), trajectory, credit)
    }),
    unscored: unscored.map(({ trajectory, outcome }) =>
      later<Trajectory, Pick<Unscored, 'outcome'>>(find(trajectory), trajectory, {
        outcome: outcome as Unscored['outcome'],
      }),
    ),
  }
}

/** A member whose tree is read when it is looked into. */
function later<Kind extends Trajectory, Rest extends object>(
  made: MadeTree,
  id: TrajectoryId,
  rest: Rest,
): { readonly tree: Tree; readonly trajectory: Kind } & Rest {
  return {
    get tree() {
      return made.tree
    },
    get trajectory() {
      return made.tree.trajectories.find(each => each.id === id) as Kind
    },
    ...rest,
  }
}

/** What trees cost together. */
export function sumNotes(notes: readonly NotedTree[]): Usage {
  return {
    sampled: notes.reduce((sum, [, , , sampled]) => sum + sampled, 0),
    prompt: notes.reduce((sum, [, , , , prompt]) => sum + prompt, 0),
  }
}
