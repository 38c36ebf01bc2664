import { smallTalk } from '../../engine/environments/built-in/small-talk.ts'
import type { RunOptions } from '../../run/run/roll-options.ts'
import type { Settings } from '../../run/settings/settings.ts'
import { type Demo, type DemoOptions, findExample, pickWatchers } from './demo.ts'
import { train } from './train.ts'

/** The defaults of the demo's second act. */
export const secondActDefaults = {
  environment: 'calc2',
  seed: 1,
  steps: 8,
  tasksPerStep: 8,
  group: 8,
  heldOut: 64,
  learningRate: 1e-3,
  shots: 2,
  lora: 'rank=8,alpha=16',
} as const

/** Lines of a few words: a reply ends with its line. */
const limits = { turns: 4, newTokens: 12, context: 512 } as const
const reply = { stop: ['\n'], onLength: 'continue' } as const

/** What can be chosen about the second act. */
export interface SecondActOptions
  extends Pick<
      DemoOptions,
      'onStep' | 'onEvaluation' | 'out' | 'listen' | 'seed' | 'steps' | 'signal'
    >,
    Pick<RunOptions, 'tell'>,
    Partial<Pick<Settings, 'offline' | 'hub' | 'device'>> {
  /** The pretrained model: `embedded:DIR`, `embedded:FILE.gguf` or `embedded:hf:OWNER/NAME`. */
  readonly policy: string
  readonly learningRate?: number
}

/** Trains a pretrained language model inside: two sums by a calculator, behind two examples, in an adapter. */
export async function runSecondAct(options: SecondActOptions): Promise<Demo> {
  const settings = { ...secondActDefaults, ...options }
  const {
    policy,
    seed,
    steps,
    tasksPerStep,
    group,
    heldOut,
    shots,
    lora,
    learningRate: from,
  } = settings
  const { offline, hub, device, tell } = options
  const kept = {
    advantage: 'dr-grpo',
    ...reply,
    shots,
    lora,
    seed,
    group,
    tasksPerStep,
    steps,
    heldOut,
  } as const
  const trained = await train(smallTalk(settings.environment), steps * tasksPerStep, {
    policy,
    ...kept,
    learningRate: { kind: 'linear', from, to: from / 4, steps },
    limits,
    ...(offline !== undefined && { offline }),
    ...(hub !== undefined && { hub }),
    ...(device !== undefined && { device }),
    ...(tell && { tell }),
    config: {
      environment: settings.environment,
      policy: [policy],
      ...kept,
      learningRate: from,
      maxTurns: limits.turns,
      maxNewTokens: limits.newTokens,
      maxContext: limits.context,
    },
    ...pickWatchers(options),
  })
  return { ...trained, example: findExample(trained) }
}
