import type { Trajectory } from '../../base/core/trajectory.ts'
import { lengthTo, type Tree } from '../../base/core/tree.ts'

/** What condensing did in one trajectory. */
export interface CondenseFigures {
  /** How often a context was condensed, how often that did not help, and either or a summary. */
  condensings: number
  failed: number
  tried: number
  /** Tokens of the contexts before and after. */
  before: number
  after: number
  blocks: number
  failures: number
  readonly cost: { prompt: number; sampled: number }
  readonly summaries: { count: number; prompt: number; sampled: number }
  readonly recalls: { count: number; characters: number; sampled: number; observed: number }
}

/** Nothing was condensed yet. */
export function noCondensing(): CondenseFigures {
  return {
    condensings: 0,
    failed: 0,
    tried: 0,
    before: 0,
    after: 0,
    blocks: 0,
    failures: 0,
    cost: { prompt: 0, sampled: 0 },
    summaries: { count: 0, prompt: 0, sampled: 0 },
    recalls: { count: 0, characters: 0, sampled: 0, observed: 0 },
  }
}

/** Adds what was counted elsewhere. */
export function addCondensing(sum: CondenseFigures, more: CondenseFigures): void {
  addNumbers(sum, more)
  addNumbers(sum.cost, more.cost)
  addNumbers(sum.summaries, more.summaries)
  addNumbers(sum.recalls, more.recalls)
}

function addNumbers<Numbers extends object>(sum: Numbers, more: Numbers): void {
  for (const [name, value] of Object.entries(more)) {
    if (typeof value === 'number') (sum as Record<string, number>)[name]! += value
  }
}

const kinds: ReadonlySet<string> = new Set(['condensed', 'summary', 'condense-failed', 'recalled'])

/** Counts a trajectory; gives nothing if nothing was condensed or recalled. */
export function condenseFigures(tree: Tree, trajectory: Trajectory): CondenseFigures | undefined {
  if (!trajectory.events.some(({ kind }) => kinds.has(kind))) return undefined
  const sum = noCondensing()
  for (const { kind, figures = {} } of trajectory.events) addEvent(sum, kind, figures)
  addRecalls(sum, tree, trajectory)
  return sum
}

function addEvent(
  sum: CondenseFigures,
  kind: string,
  figures: Readonly<Record<string, number>>,
): void {
  const { before = 0, after = 0, blocks = 0, failures = 0, prompt = 0, sampled = 0 } = figures
  if (kind === 'condensed') {
    sum.condensings++
    sum.before += before
    sum.after += after
    sum.blocks += blocks
    sum.cost.prompt += prompt
    sum.cost.sampled += sampled
  } else if (kind === 'summary') {
    sum.summaries.count++
    sum.summaries.prompt += prompt
    sum.summaries.sampled += sampled
  } else if (kind === 'condense-failed') sum.failed++
  else return
  sum.failures += failures
  sum.tried++
}

/** What recalling cost: the turns that asked for a block, and what was observed after them. */
function addRecalls({ recalls }: CondenseFigures, tree: Tree, { events, turns }: Trajectory): void {
  const recalled = events.filter(({ kind }) => kind === 'recalled')
  recalls.count += recalled.length
  for (const { figures } of recalled) recalls.characters += figures?.characters ?? 0
  for (const turn of new Set(recalled.map(event => event.turn))) {
    const { from, end } = turns[turn]!
    const next = turns[turn + 1]
    recalls.sampled += lengthTo(tree, end) - tree.nodes[from]!.start
    // If the context was condensed in between, the next turn stands on another path.
    const observed = next ? tree.nodes[next.from]!.start - lengthTo(tree, end) : 0
    recalls.observed += Math.max(0, observed)
  }
}
