import type { Environment } from '../../src/base/core/environment.ts'
import type { Group } from '../../src/base/core/group.ts'
import type { GroupId } from '../../src/base/core/ids.ts'
import type { Policy } from '../../src/base/core/policy.ts'
import { random, seedOf } from '../../src/base/math/random.ts'
import { mean } from '../../src/base/math/statistics.ts'
import { desk } from '../../src/engine/environments/desk/desk.ts'
import { withFork } from '../../src/engine/environments/fork.ts'
import { rollChain } from '../../src/engine/rollout/chain.ts'
import { makeEstimate } from '../../src/engine/weigh/estimate.ts'
import { shapedEstimate } from '../../src/engine/weigh/shape.ts'
import { embeddedTrainer } from '../../src/learn/learn/embedded-trainer.ts'
import { evaluateHeldOut } from '../../src/learn/learn/held-out.ts'
import { measured } from '../../src/learn/learn/learn-step.ts'
import { openEmbedded } from '../../src/learn/model/embedded.ts'
import { openFilters } from '../../src/run/run/open-parts.ts'
import { openRollPipeline, type RollParts } from '../../src/run/run/roll-groups.ts'
import { openRenderer } from '../../src/run/settings/model-source.ts'
import { openCondense } from '../../src/run/settings/open-condense.ts'
import { openStrategy } from '../../src/run/settings/open-strategy.ts'

/** One way to roll and learn that is compared with others. */
export interface Arm {
  readonly name: string
  readonly about: string
  readonly strategy?: 'chain' | 'tree' | 'step'
  readonly branch?: string
  /** Trees per task and endings of each; a chain has one ending. */
  readonly group?: number
  readonly leaves?: number
  readonly stepHistory?: number
  readonly length?: 'short' | 'long'
  /** Tasks of one step. @default 16 */
  readonly tasks?: number
  /** Most turns while learning; evaluations of a long desk always have 16. */
  readonly turns?: number
  readonly context?: number
  readonly rolloutTokens?: number
  readonly temperature?: number
  readonly entropy?: number
  readonly filters?: readonly string[]
  readonly condense?: string
  /** The loss to learn with. @default 'ppo' */
  readonly loss?: string
  /** Updates per step; ratios leave 1 after the first. @default 1 */
  readonly updates?: number
  /** Learns from the budget's teacher, alone or on top of the comparison within groups. */
  readonly distill?: 'alone' | 'added'
  /** The chance that an attempt is sampled at temperature 3, as if at that of the run. */
  readonly noise?: number
}

/** How much every arm may spend. */
export interface Budget {
  /** Sampled tokens to learn from. */
  readonly tokens: number
  readonly heldOut: number
  /** Evaluations after the first. */
  readonly evaluations: number
  readonly model: string
  /** The folder of the model that arms with `distill` learn from. */
  readonly teacher?: string
}

/** The result of one run of an arm. */
export interface Measured {
  readonly arm: string
  readonly seed: number
  readonly tokens: number
  readonly steps: number
  /** Mean reward on held-out tasks, and the tokens learned from until then; the start first. */
  readonly curve: readonly { readonly tokens: number; readonly reward: number }[]
  /** Groups with unequal rewards per thousand sampled tokens, and as a share of groups. */
  readonly mixedPerThousand: number
  readonly mixedShare: number
  readonly gradientNorm: { readonly mean: number; readonly highest: number }
  readonly ratio: { readonly lowest: number; readonly highest: number }
  readonly entropy: number
  readonly dropped: number
  readonly turns: number
}

/** Rolls and learns until the tokens are spent; evaluates with chains on the way. */
export async function measureArm(arm: Arm, seed: number, budget: Budget): Promise<Measured> {
  const { signal } = new AbortController()
  await using policy = await openEmbedded(budget.model, { threads: 1 })
  const world = desk({ length: arm.length ?? 'short' }) as Environment
  await using teacher = arm.distill
    ? await openEmbedded(budget.teacher!, { threads: 1 })
    : undefined
  const parts = await partsOf(arm, {
    policy,
    world,
    seed,
    model: budget.model,
    ...(teacher && { teacher }),
  })
  const plain: RollParts = {
    ...parts,
    policy,
    filters: [],
    strategy: evaluationOf(arm, parts),
    limits: { ...parts.limits, turns: arm.length === 'long' ? 16 : 10 },
  }
  const perStep = arm.tasks ?? 16
  const { loss, updates = 1, entropy = 0.01 } = arm
  const trainer = embeddedTrainer(policy.model, {
    learningRate: 4e-4,
    entropy,
    seed,
    updates,
    ...(loss && { loss }),
  })
  const tasks = world.makeTasks!({ count: 4000, seed })
  // A long task is eight short ones.
  const count = arm.length === 'long' ? budget.heldOut / 4 : budget.heldOut
  const heldOut = world.makeTasks!({ count, seed: 1000, split: 'held-out' })
  const tally = openTally()
  const evaluate = async (): Promise<void> => {
    const options = { name: `at ${tally.tokens}`, successAt: 1, order: 0 }
    tally.evaluated(await evaluateHeldOut(heldOut, plain, options))
  }
  await evaluate()
  for (let step = 0; tally.tokens < budget.tokens; step++) {
    const from = (step * perStep) % (tasks.length - perStep)
    const some = tasks.slice(from, from + perStep)
    const groups = await rollAll(some, parts, step)
    const { metrics } = await measured(await trainer.step(groups, { signal }))
    tally.learned(groups, metrics)
    const due = Math.ceil((tally.curveLength * budget.tokens) / budget.evaluations)
    if (tally.tokens >= Math.min(due, budget.tokens)) await evaluate()
  }
  return { arm: arm.name, seed, ...tally.result() }
}

async function rollAll(
  tasks: ReturnType<NonNullable<Environment['makeTasks']>>,
  parts: RollParts,
  step: number,
): Promise<readonly Group[]> {
  await using pipeline = openRollPipeline(parts)
  tasks.forEach((task, order) => {
    pipeline.submit({ id: `${step}/${task.id}` as GroupId, task, order, step })
  })
  const groups: Group[] = []
  while (pipeline.pending > 0) groups.push(await pipeline.next())
  // In the order of submission: learning must not depend on which was ready first.
  return groups.sort((a, b) => a.id.localeCompare(b.id, 'en', { numeric: true }))
}

async function partsOf(
  arm: Arm,
  opened: { policy: Policy; world: Environment; seed: number; model: string; teacher?: Policy },
): Promise<RollParts> {
  const { policy, world, seed, model, teacher } = opened
  const renderer = await openRenderer(model)
  const condense = arm.condense ? await openCondense(arm.condense, renderer) : undefined
  const rolling = await openStrategy(
    {
      strategy: arm.strategy ?? 'chain',
      branch: arm.branch,
      leaves: arm.leaves ?? 8,
      stepHistory: arm.stepHistory ?? 3,
      topLogprobs: 0,
    },
    { environment: world, renderer },
  )
  return {
    ...rolling,
    environment: arm.strategy === 'tree' ? withFork(world) : world,
    policy: arm.noise ? withNoise(policy, arm.noise) : policy,
    renderer,
    estimate: shapedEstimate(
      makeEstimate('grpo'),
      arm.distill ? { distillation: { mode: arm.distill, coefficient: 1 } } : {},
    ),
    ...(teacher && { scorers: { teacher } }),
    group: arm.group ?? 8,
    filters: await openFilters(arm.filters ?? []),
    sampling: { temperature: arm.temperature ?? 1 },
    limits: {
      turns: arm.turns ?? 10,
      newTokens: 24,
      tokens: arm.rolloutTokens ?? 160,
      context: arm.context ?? 1024,
    },
    ...(condense && { condense }),
    concurrency: 256,
    seed,
  }
}

/** Policies trained in steps are evaluated in steps, all others in chains. */
function evaluationOf(arm: Arm, { strategy }: RollParts): NonNullable<RollParts['strategy']> {
  return arm.strategy === 'step' ? strategy! : rollChain
}

/** A policy that samples nonsense in a share of the attempts: tokens far off its own distribution. */
function withNoise(policy: Policy, chance: number): Policy {
  return {
    ...policy,
    async sample(request, call) {
      if (random(seedOf('noise', request.session))() >= chance) {
        return await policy.sample(request, call)
      }
      const sampling = { ...request.sampling, temperature: 3 }
      return await policy.sample({ ...request, sampling }, call)
    },
  }
}

/** Adds up the figures of a run. */
function openTally() {
  const curve: { tokens: number; reward: number }[] = []
  const norms: number[] = []
  const ratios = { lowest: 1, highest: 1 }
  const turns: number[] = []
  const counts = { tokens: 0, steps: 0, groups: 0, mixed: 0, dropped: 0 }
  let entropy = 0
  return {
    get tokens() {
      return counts.tokens
    },
    get curveLength() {
      return curve.length
    },
    evaluated({ meanReward: reward }: { readonly meanReward: number }): void {
      curve.push({ tokens: counts.tokens, reward })
    },
    learned(groups: readonly Group[], metrics: Readonly<Record<string, number>>): void {
      counts.steps++
      for (const { members, unscored } of groups) {
        counts.groups++
        const rewards = members.map(member => member.reward.total)
        if (new Set(rewards).size > 1) counts.mixed++
        counts.dropped += members.filter(({ dropped }) => dropped !== null).length
        turns.push(...members.map(({ trajectory }) => trajectory.turns.length))
        counts.tokens += sampledIn([...members, ...unscored])
      }
      if (metrics.gradientNorm !== undefined) norms.push(metrics.gradientNorm)
      ratios.lowest = Math.min(ratios.lowest, metrics.minimumRatio ?? 1)
      ratios.highest = Math.max(ratios.highest, metrics.maximumRatio ?? 1)
      entropy = metrics.entropy ?? entropy
    },
    result: () => ({
      tokens: counts.tokens,
      steps: counts.steps,
      curve,
      mixedPerThousand: (1000 * counts.mixed) / counts.tokens,
      mixedShare: counts.mixed / counts.groups,
      gradientNorm: { mean: mean(norms), highest: Math.max(0, ...norms) },
      ratio: ratios,
      entropy,
      dropped: counts.dropped,
      turns: mean(turns),
    }),
  }
}

/** Sampled tokens of trees, each counted once. */
function sampledIn(members: readonly Pick<Group['members'][number], 'tree'>[]): number {
  let total = 0
  for (const tree of new Set(members.map(member => member.tree))) {
    for (const { segment } of tree.nodes) {
      if (segment.origin === 'sampled') total += segment.ids.length
    }
  }
  return total
}
