import { type Message, textOf } from '@espalier/text'
import type { Outcome } from '../../../base/core/outcome.ts'
import type { Trajectory } from '../../../base/core/trajectory.ts'
import type { Frame, FrameArray } from '../../../run/store/frame.ts'

/** What is kept in memory of a trajectory; everything else stays on disk. */
export interface Facts {
  readonly outcome: string
  readonly turns: number
  readonly sampled: number
  readonly prompt: number
  readonly cached: number
  readonly seconds: Trajectory['volatile']['seconds']
  readonly tools: readonly string[]
  readonly byTool: ReadonlyMap<string, { calls: number; problems: number }>
  readonly fidelity: string
}

/** What is kept in memory of a tree. */
export interface TreeFacts {
  readonly opening: string
  readonly trajectories: ReadonlyMap<string, Facts>
  /** Sampled tokens, those of shared beginnings once. */
  readonly sampled: number
  /** Sums over the sampled tokens for which the policy reported it. */
  readonly entropy: { readonly sum: number; readonly count: number }
  readonly surprise: { readonly sum: number; readonly count: number }
}

/** The fields of a tree's frame that are read without building the tree. */
interface StoredTree {
  readonly nodes: readonly {
    readonly origin: string
    readonly ids: number
    readonly logprobs?: number
    readonly entropies?: number
  }[]
  readonly trajectories: readonly Trajectory[]
}

/** Looks at the frame of a tree. */
export function factsOf({ header, arrays }: Frame): TreeFacts {
  const { nodes, trajectories } = (header as { readonly tree: StoredTree }).tree
  const sampled = nodes.filter(node => node.origin === 'sampled')
  return {
    opening: openingOf(trajectories[0]),
    trajectories: new Map(trajectories.map(each => [each.id, trajectoryFacts(each)])),
    sampled: sampled.reduce((sum, node) => sum + (arrays[node.ids]?.length ?? 0), 0),
    entropy: sumOf(sampled.map(node => at(arrays, node.entropies))),
    surprise: sumOf(
      sampled.map(node => at(arrays, node.logprobs)),
      -1,
    ),
  }
}

function at(arrays: readonly FrameArray[], index: number | undefined): FrameArray | undefined {
  return index === undefined ? undefined : arrays[index]
}

function sumOf(arrays: readonly (FrameArray | undefined)[], sign = 1): TreeFacts['entropy'] {
  let sum = 0
  let count = 0
  for (const array of arrays) {
    if (!array) continue
    for (const value of array) sum += sign * value
    count += array.length
  }
  return { sum, count }
}

function trajectoryFacts(trajectory: Trajectory): Facts {
  const { calls, usage, volatile, turns, fidelity, outcome } = trajectory
  const byTool = new Map<string, { calls: number; problems: number }>()
  for (const { tool, problem } of calls) {
    const sofar = byTool.get(tool || '(none)') ?? { calls: 0, problems: 0 }
    byTool.set(tool || '(none)', {
      calls: sofar.calls + 1,
      problems: sofar.problems + Number(problem !== undefined),
    })
  }
  return {
    outcome: outcomeLabel(outcome),
    turns: turns.length,
    sampled: usage.sampled,
    prompt: usage.prompt,
    cached: volatile.cached,
    seconds: volatile.seconds,
    tools: [...byTool.keys()],
    byTool,
    fidelity: fidelity.kind,
  }
}

/** An outcome without its details, for counting. */
export function outcomeLabel(outcome: Outcome): string {
  if (outcome.kind === 'truncated') return `truncated by ${outcome.limit}`
  if (outcome.kind === 'failed') return `failed in ${outcome.boundary}`
  return outcome.kind === 'aborted' ? `aborted by ${outcome.by}` : 'completed'
}

const openingLength = 120

/** The beginning of what the user first said. */
function openingOf(trajectory: Pick<Trajectory, 'messages'> | undefined): string {
  const messages: readonly Message[] = trajectory?.messages ?? []
  const first = messages.find(({ role }) => role === 'user') ?? messages[0]
  return first ? shorten(textOf(first.content), openingLength) : ''
}

/** The last words of the policy. */
export function answerOf({ messages }: Pick<Trajectory, 'messages'>): string {
  const last = messages.findLast(({ role }) => role === 'assistant')
  if (last?.role !== 'assistant') return ''
  const calls = (last.tool_calls ?? []).map(({ function: { name } }) => `→ ${name}`).join(' ')
  return shorten([textOf(last.content), calls].filter(Boolean).join(' '), openingLength)
}

/** One line of at most so many characters. */
export function shorten(text: string, most: number): string {
  const line = text
    .slice(0, most * 4)
    .replace(/\s+/g, ' ')
    .trim()
  return line.length <= most ? line : `${line.slice(0, most - 1)}…`
}
