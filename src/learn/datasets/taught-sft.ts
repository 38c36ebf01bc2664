import type { Renderer } from '@espalier/text'
import { type Message, textOf } from '@espalier/text'
import type { Call } from '../../base/core/call.ts'
import type { Environment, Task } from '../../base/core/environment.ts'
import type { GroupId } from '../../base/core/ids.ts'
import { type Policy, plainSampling } from '../../base/core/policy.ts'
import { isGradable, type Trajectory } from '../../base/core/trajectory.ts'
import { blocksIn } from '../../engine/condensers/blocks.ts'
import {
  type PassageTask,
  passageInstructions,
  passageOpening,
  passages,
} from '../../engine/environments/built-in/passages.ts'
import { f1 } from '../../engine/rewards/f1.ts'
import {
  type CondenseSettings,
  defaultLimits,
  type Limits,
  type RolloutContext,
} from '../../engine/rollout/attempt.ts'
import { rollChain } from '../../engine/rollout/chain.ts'
import { rewardInputOf } from '../../engine/rollout/score.ts'
import { plainContext } from '../../engine/rollout/shared.ts'
import type { Built, DatasetItem } from './build.ts'
import { problemWith, rejected, toRow } from './condensed-sft.ts'
import { supportingBlocks } from './needed.ts'

/** The policy that demonstrates, and when a demonstration is good enough. */
export interface TeacherOptions {
  readonly policy: Policy
  readonly renderer: Renderer
  readonly condense: CondenseSettings
  /** Tried one after the other until a conversation is good enough. @default [0.4, 0.7] */
  readonly temperatures?: readonly number[]
  /** The least F1 of its answer. @default 0.5 */
  readonly least?: number
  /** @default 8 turns, 2048 tokens a turn */
  readonly limits?: Partial<Limits>
  readonly concurrency: number
  readonly seed: number
}

interface Teaching extends Required<Pick<TeacherOptions, 'temperatures' | 'least' | 'seed'>> {
  /** What all conversations share; only the temperature differs. */
  readonly context: RolloutContext & { readonly condense: CondenseSettings }
}

/**
 * Conversations that a policy leads itself. It is told privately what supports the answer, and to
 * recall it; what it was told is not in the row.
 */
export function makeTaughtSft(options: TeacherOptions): (task: Task<PassageTask>) => DatasetItem {
  const { temperatures = [0.4, 0.7], least = 0.5, seed } = options
  const teaching: Teaching = { temperatures, least, seed, context: contextOf(options) }
  return task => ({
    id: task.id,
    async build(call) {
      const problem = problemWith(task.data)
      if (problem) return problem
      let last: Built = rejected('no-temperatures')
      for (const [rung, temperature] of temperatures.entries()) {
        last = await teachOnce(task, teaching, { ...call, rung, temperature })
        if (last.kind === 'kept') return last
      }
      return last
    },
  })
}

async function teachOnce(
  task: Task<PassageTask>,
  teaching: Teaching,
  { signal, rung, temperature }: Call & { readonly rung: number; readonly temperature: number },
): Promise<Built> {
  const { context: shared, seed } = teaching
  const context = { ...shared, sampling: { ...plainSampling, temperature } }
  const attempt = {
    task,
    group: task.id as string as GroupId,
    member: rung,
    seed,
    signal,
  }
  const tree = await rollChain(context, attempt)
  return await judge(task, tree.trajectories[0]!, teaching)
}

function contextOf(options: TeacherOptions): Teaching['context'] {
  const limits = { ...defaultLimits, turns: 8, ...options.limits }
  return {
    ...plainContext({ ...options, limits }),
    environment: hinting as Environment,
    condense: options.condense,
  }
}

/** Passages whose opening tells privately what supports the answer. */
const hinting = passages({ instructions: data => `${passageInstructions}\n\n${hintFor(data)}` })

function hintFor({ supporting, answer }: PassageTask): string {
  return (
    `In private, for you alone: the answer is ${JSON.stringify(answer[0])}, and it follows from the ` +
    `passages on ${supporting.join(', ')}. Get back every block about them, one a call, before you ` +
    'answer, and reason from what they say. Never let it show that you were told.'
  )
}

/** Phrases by which a policy reveals the private hint. */
const leak =
  /\b(?:hint|in private|ground truth|i was told|you told me|as instructed|given answer)\b/i

async function judge(
  task: Task<PassageTask>,
  trajectory: Trajectory,
  { least, context: { condense } }: Teaching,
): Promise<Built> {
  const { outcome, views, messages } = trajectory
  if (outcome.kind === 'failed')
    return rejected('failed', `${outcome.boundary}: ${outcome.message}`)
  if (outcome.kind !== 'completed' || !isGradable(trajectory)) return rejected('not-completed')
  const [view, ...others] = views ?? []
  if (view?.turn !== 0) return rejected('nothing-condensed')
  if (others.length > 0) return rejected('condensed-again')
  const said = messages.slice(view.from)
  const own = said.flatMap(each => (each.role === 'assistant' ? [textOf(each.content)] : []))
  if (own.some(text => leak.test(text))) return rejected('gives-away-the-hint')
  const score = await f1()(rewardInputOf(trajectory, task), {
    signal: new AbortController().signal,
  })
  if (score < least) return rejected('wrong-answer', `F1 ${score.toFixed(2)}`)
  const shown: readonly Message[] = [passageOpening(task.data)[0], ...view.shown.slice(1)]
  const missed = missedBlocks(task.data, shown, trajectory)
  if (missed.length > 0) return rejected('needed-block-not-recalled', `block ${missed.join(', ')}`)
  const recalls = trajectory.events.filter(({ kind }) => kind === 'recalled').length
  const figures = trajectory.events.find(({ kind }) => kind === 'condensed')?.figures ?? {}
  const condensing = condense.condenser.open()
  const made = { condensing, figures, recalls, notes: { f1: score } }
  return { kind: 'kept', rows: [toRow(task, [...shown, ...said], made)] }
}

/** Blocks that the answer needs and that were not asked for. */
function missedBlocks(
  { question, answer, passages: all, supporting }: PassageTask,
  shown: readonly Message[],
  { events }: Trajectory,
): readonly number[] {
  const recalled = new Set(
    events.flatMap(({ kind, figures }) => (kind === 'recalled' ? [figures!.block!] : [])),
  )
  const support = all.filter(({ title }) => supporting.includes(title))
  // A block's condensed text begins with its passage's title, if that is known.
  return [...blocksIn(shown)].flatMap(([number, text]) => {
    const passage = support.find(({ title }) => text.includes(title))
    if (!passage || recalled.has(number)) return []
    const original = `${passage.title}: ${passage.text}`
    const needed = supportingBlocks([{ number, original, turn: 0 }], shown, {
      texts: [original],
      matter: `${question} ${answer[0]}`,
    })
    return needed.length > 0 ? [number] : []
  })
}
