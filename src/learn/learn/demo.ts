import type { Trajectory } from '../../base/core/trajectory.ts'
import { desk } from '../../engine/environments/desk/desk.ts'
import type { AttemptOptions } from '../../run/run/roll-options.ts'
import type { Settings } from '../../run/settings/settings.ts'
import { openEmbedded } from '../model/embedded.ts'
import type { Control } from './control.ts'
import { type Trained, train } from './train.ts'
import type { LearningOptions } from './train-options.ts'

/** The demo's defaults. */
export const demoDefaults = {
  seed: 1,
  steps: 80,
  tasksPerStep: 32,
  group: 8,
  heldOut: 512,
  learningRate: 6e-4,
  strategy: 'chain',
  leaves: 4,
} as const

/** Conversations at the desk are short. */
const limits = { turns: 10, tokens: 160, newTokens: 24 } as const

/** What can be chosen about a demo. */
export interface DemoOptions
  extends Pick<LearningOptions, 'onStep' | 'onEvaluation' | 'out' | 'maxStaleness' | 'onUpdate'>,
    Pick<AttemptOptions, 'listen'> {
  readonly seed?: number
  readonly steps?: number
  readonly strategy?: Settings['strategy']
  /** Endings of a tree, if trees are rolled. */
  readonly leaves?: number
  readonly learningRate?: number
  readonly oracleBonus?: number
  /** Removes the information from the groups, as a control: success should not rise then. */
  readonly control?: Control
  readonly signal?: AbortSignal
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

/**
 * Rolls the base model of this package at the desk, trains it with GRPO on its own trajectories and
 * evaluates it before and after; the number of steps is fixed, whatever the clock says.
 */
export async function runDemo(options: DemoOptions = {}): Promise<Demo> {
  const settings = { ...demoDefaults, ...options }
  const {
    seed,
    steps,
    tasksPerStep,
    strategy,
    leaves,
    heldOut,
    control,
    oracleBonus = 0,
  } = settings
  const ahead = aheadOf(settings)
  await using policy = await openEmbedded()
  const trained = await train(desk(), steps * tasksPerStep, {
    policy,
    strategy,
    leaves,
    // Trees share their prompts: fewer of them have as many endings.
    group: strategy === 'tree' ? settings.group / leaves : settings.group,
    ...learningOf(settings),
    ...(control && { control }),
    oracleBonus,
    steps,
    tasksPerStep,
    heldOut,
    limits,
    ...ahead,
    config: {
      environment: 'desk',
      policy: ['embedded'],
      seed,
      steps,
      strategy,
      heldOut,
      maxTurns: limits.turns,
      maxNewTokens: limits.newTokens,
      maxRolloutTokens: limits.tokens,
      ...ahead,
    },
    ...pickWatchers(options),
  })
  return { ...trained, example: findExample(trained) }
}

/** The rate falls while the policy settles. */
function learningOf({
  steps,
  learningRate: from,
  seed,
}: Required<Pick<DemoOptions, 'steps' | 'learningRate' | 'seed'>>) {
  return {
    learningRate: { kind: 'linear', from, to: from / 6, steps },
    seed,
  } as const
}

/** How far rolling runs ahead of learning, if it does. */
function aheadOf({ maxStaleness = 0, onUpdate }: Pick<DemoOptions, 'maxStaleness' | 'onUpdate'>) {
  return maxStaleness > 0 ? { maxStaleness, ...(onUpdate && { onUpdate }) } : {}
}

/** What watches a demo, and where it is kept. */
export function pickWatchers({
  onStep,
  onEvaluation,
  signal,
  out,
  listen,
}: Pick<DemoOptions, 'onStep' | 'onEvaluation' | 'signal' | 'out' | 'listen'>) {
  return {
    ...(listen && { listen }),
    ...(onStep && { onStep }),
    ...(onEvaluation && { onEvaluation }),
    ...(signal && { signal }),
    ...(out !== undefined && { out }),
  }
}

/** The first task, in the order of tasks, that was failed before and solved after. */
export function findExample({ training: { before, after } }: Trained): Example | undefined {
  const failed = new Map(
    before.attempts
      .filter(({ isSolved }) => !isSolved)
      .map(({ task, trajectory }) => [task, trajectory]),
  )
  const solved = after.attempts
    .filter(({ isSolved, task }) => isSolved && failed.has(task))
    .sort((a, b) => a.task.localeCompare(b.task, 'en', { numeric: true }))
  // Prefer an example with several turns, which shows more.
  const found = solved.find(({ trajectory }) => trajectory.turns.length >= 4) ?? solved[0]
  if (!found) return undefined
  return { task: found.task, before: failed.get(found.task)!, after: found.trajectory }
}
