// States that must not compile. Checked by the type checker alone; nothing here runs.

import type { Message, Reply } from '@espalier/text'
import type { Filter, Group, Scored, Sink, Unscored, Weighted } from './group.ts'
import type { GroupId, NonEmpty, TaskId, TrajectoryId, TreeId } from './ids.ts'
import type { Outcome } from './outcome.ts'
import type { Reward } from './reward.ts'
import { type GivenSegment, given, type SampledSegment, type Segment, sampled } from './segment.ts'
import type { Gradable, Trajectory } from './trajectory.ts'
import type { Lineage, Tree } from './tree.ts'

declare const ids: Int32Array
declare const logprobs: Float32Array
declare const tree: Tree
declare const trajectory: Trajectory
declare const gradable: Gradable
declare const reward: Reward
declare const sink: Sink
declare const scoredGroup: Group<Scored>
declare const weightedGroup: Group<Weighted>
declare const call: { readonly signal: AbortSignal }

// Observed tokens with log-probabilities, written out or held in a variable.
// @ts-expect-error
const observedWithLogprobs: GivenSegment = { origin: 'observed', ids, logprobs }
const held = { origin: 'observed', ids, logprobs } as const
// @ts-expect-error
const observedFromVariable: Segment = held

// A sampled segment that nobody checked.
// @ts-expect-error
const unchecked: SampledSegment = {
  origin: 'sampled',
  ids,
  logprobs,
  basis: 'raw',
  version: { from: 1, to: 1 },
}
const checked: SampledSegment = sampled({ ids, logprobs, version: { from: 1, to: 1 } })

// Sampled tokens posing as given, and given tokens with a version.
// @ts-expect-error
const posing: GivenSegment = checked
// @ts-expect-error
given('sampled', ids)
// @ts-expect-error
const versioned: GivenSegment = { origin: 'prompt', ids, version: { from: 1, to: 1 } }

// A rewrite without its reason, and an extension with one.
// @ts-expect-error
const reasonless: Lineage = { kind: 'rewrites', of: { node: 0, offset: 0 }, by: 'template' }
// @ts-expect-error
const reasoned: Lineage = { kind: 'extends', reason: 'no reason is needed' }

// A truncation without its limit, a failure without its boundary, an abortion without its author.
// @ts-expect-error
const limitless: Outcome = { kind: 'truncated' }
// @ts-expect-error
const boundless: Outcome = { kind: 'failed', message: 'it broke' }
// @ts-expect-error
const authorless: Outcome = { kind: 'aborted' }

// Scoring what may not be scored.
// @ts-expect-error
const scoredFailure: Scored = { tree, trajectory, reward }
const scoredSuccess: Scored = { tree, trajectory: gradable, reward }
// @ts-expect-error
const unscoredSuccess: Unscored = { tree, trajectory: gradable, outcome: { kind: 'completed' } }

// Writing a group that was never weighed.
// @ts-expect-error
sink.write(scoredGroup, call)
sink.write(weightedGroup, call)

// Dropping without a reason.
const careless: Filter = {
  name: 'careless',
  // @ts-expect-error
  judge: ({ members }) => new Map(members.map(member => [member.trajectory.id, { from: 'loss' }])),
}

// Mixing the ids of two nouns.
declare const task: TaskId
// @ts-expect-error
const wrongId: GroupId = task
// @ts-expect-error
const wrongTree: TreeId = 'a tree' satisfies string
declare const trajectoryName: TrajectoryId
// @ts-expect-error
const wrongTask: TaskId = trajectoryName

// An empty list where one entry is promised, a tool's answer without its call, a reply without calls.
// @ts-expect-error
const empty: NonEmpty<number> = []
// @ts-expect-error
const orphan: Message = { role: 'tool', content: 'x' }
// @ts-expect-error
const silent: Reply = { message: { role: 'assistant', content: 'x' } }

export type Pinned = [
  typeof observedWithLogprobs,
  typeof observedFromVariable,
  typeof unchecked,
  typeof posing,
  typeof versioned,
  typeof reasonless,
  typeof reasoned,
  typeof limitless,
  typeof boundless,
  typeof authorless,
  typeof scoredFailure,
  typeof scoredSuccess,
  typeof unscoredSuccess,
  typeof careless,
  typeof wrongId,
  typeof wrongTree,
  typeof wrongTask,
  typeof empty,
  typeof orphan,
  typeof silent,
]
