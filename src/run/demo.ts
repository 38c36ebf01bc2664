import type { Trajectory } from '../core/trajectory.ts'
import { openRunParts, type Tell } from './open-run.ts'
import { type Settings, withDefaults } from './settings.ts'
import type { LearningOptions, Trained } from './train.ts'
import { trainWith } from './train-settings.ts'

/** The settings that the demo trains with; everything else is as for `espalier train`. */
export const demoSettings = {
  policy: 'embedded',
  environment: 'desk',
  group: 8,
  steps: 60,
  tasksPerStep: 32,
  heldOut: 512,
  maxTurns: 10,
  maxNewTokens: 24,
  maxRolloutTokens: 160,
  concurrency: 256,
  learningRate: 4e-4,
  entropyBonus: 0.01,
} as const

/** What can be chosen about a demo. */
export interface DemoOptions extends Pick<LearningOptions, 'onStep' | 'onEvaluation'> {
  readonly seed: number
  readonly steps: number
  readonly strategy: Settings['strategy']
  readonly out: string
  readonly signal: AbortSignal
  readonly tell: Tell
}

/** A demo that was run, with one task as it went before and after. */
export interface Demo extends Trained {
  readonly example: Example | undefined
}

/** A held-out task that failed before training and was solved after it. */
export interface Example {
  readonly task: string
  readonly before: Trajectory
  readonly after: Trajectory
}

/** Trains the base model of this package at the desk; the number of steps is fixed by the settings. */
export async function runDemo(options: DemoOptions): Promise<Demo> {
  const { seed, steps, strategy, out, signal, tell, onStep, onEvaluation } = options
  const values = withDefaults({ ...demoSettings, policy: ['embedded'], seed, steps, strategy, out })
  await using opened = await openRunParts(values, tell)
  const more = { out, ...(onStep && { onStep }), ...(onEvaluation && { onEvaluation }) }
  const trained = await trainWith(values, { ...opened.parts, signal }, more)
  return { ...trained, example: findExample(trained) }
}

/** The first task, in the order of tasks, that was failed before and solved after. */
function findExample({ training: { before, after } }: Trained): Example | undefined {
  const failed = new Map(
    before.attempts
      .filter(({ isSolved }) => !isSolved)
      .map(({ task, trajectory }) => [task, trajectory]),
  )
  const solved = after.attempts
    .filter(({ isSolved, task }) => isSolved && failed.has(task))
    .sort((a, b) => a.task.localeCompare(b.task, 'en', { numeric: true }))
  // Of equal examples, one that took several turns shows more.
  const found = solved.find(({ trajectory }) => trajectory.turns.length >= 4) ?? solved[0]
  if (!found) return undefined
  return { task: found.task, before: failed.get(found.task)!, after: found.trajectory }
}
