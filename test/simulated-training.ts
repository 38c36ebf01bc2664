import type { Environment } from '../src/base/core/environment.ts'
import type { Group } from '../src/base/core/group.ts'
import type { TaskId } from '../src/base/core/ids.ts'
import type { Trainer } from '../src/base/core/trainer.ts'
import { makeEstimate } from '../src/engine/weigh/estimate.ts'
import type { StepRecord } from '../src/learn/learn/steps/step-record.ts'
import { runTraining, type Training } from '../src/learn/learn/training.ts'
import type { TrainingPlan } from '../src/learn/learn/training-plan.ts'
import type { RollParts } from '../src/run/run/roll-groups.ts'
import { makeTaskSampler } from '../src/run/tasks/sample-tasks.ts'
import { openCountingPolicy } from './counting-policy.ts'
import { openByteRenderer } from './rolling.ts'
import { openSimulatedTime, type SimulatedTime } from './simulated-time.ts'

/** A training run in simulated time: only how long things take is made up. */
export interface Simulation {
  /** Seconds that an attempt at a task takes between its two turns; the seed is the attempt's. */
  readonly attempt: (task: string, seed: number) => number
  /** Seconds of a step of learning. */
  readonly learn: number
  readonly tasks: number
  /** The version that a sample says it is of, given that of now. @default that of now */
  readonly version?: (task: string, version: number) => number
  readonly concurrency?: number
  readonly plan: Pick<TrainingPlan, 'steps' | 'tasksPerStep'> & Partial<TrainingPlan>
  readonly parts?: Partial<RollParts>
}

/** What came of it. */
export interface Simulated {
  readonly training: Training
  readonly records: readonly StepRecord[]
  /** The groups that each step learned from. */
  readonly learned: readonly (readonly Group[])[]
  readonly seconds: number
  /** Tokens that the policy was asked for and gave. */
  readonly sampled: number
}

/** Two turns, and between them as much time as an attempt takes: where a tool is slow, tokens grow old. */
function openWaiting({ attempt }: Simulation, time: SimulatedTime): Environment {
  return {
    name: 'waiting',
    readTask: () => null,
    reward: {},
    open: async (task, { seed }) => ({
      opening: [{ role: 'user', content: task.id }],
      tools: [],
      async step(_, { turn, signal }) {
        if (turn > 0) return { kind: 'end' }
        await time.wait(attempt(task.id, seed), signal)
        return { kind: 'continue', observed: [{ role: 'user', content: 'go on' }] }
      },
      async [Symbol.asyncDispose]() {},
    }),
  }
}

/** Runs a training run in simulated time. */
export async function simulateTraining(simulation: Simulation): Promise<Simulated> {
  const time = openSimulatedTime()
  const renderer = await openByteRenderer()
  const learned: (readonly Group[])[] = []
  const records: StepRecord[] = []
  let version = 0
  const { policy, counts } = openCountingPolicy({
    length: ({ seed }) => 4 + (seed % 9),
    end: renderer.stopIds[0]!,
    version: ({ key: { task } }) => simulation.version?.(task, version) ?? version,
  })
  const trainer: Trainer = {
    name: 'simulated',
    async step(groups) {
      learned.push(groups)
      await time.wait(simulation.learn)
      return { version: version + 1, metrics: {} }
    },
    async publish() {
      version++
    },
    save: async () => {},
    load: async () => ({ version }),
    async [Symbol.asyncDispose]() {},
  }
  const parts: RollParts = {
    environment: openWaiting(simulation, time),
    policy,
    renderer,
    estimate: makeEstimate('grpo'),
    reward: { length: ({ trajectory }) => trajectory.usage.sampled },
    group: 4,
    concurrency: simulation.concurrency ?? 10_000,
    seed: 4,
    ...simulation.parts,
  }
  const task = (id: string) => ({ id: id as TaskId, data: null })
  const plan: TrainingPlan = {
    tasks: makeTaskSampler(
      'uniform',
      Array.from({ length: simulation.tasks }, (_, id) => task(String(id))),
      1,
    ),
    heldOut: [task('held')],
    checkpointEvery: 1000,
    patience: 0,
    successAt: 1,
    refill: 1,
    onUpdate: 'finish',
    clock: time.now,
    onStep: record => records.push(record),
    ...simulation.plan,
  }
  const training = await time.during(runTraining(plan, parts, trainer))
  return { training, records, learned, seconds: time.now(), sampled: counts.sampled }
}
