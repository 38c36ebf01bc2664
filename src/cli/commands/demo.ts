import type { Environment } from '../../core/environment.ts'
import { desk } from '../../environments/desk/desk.ts'
import { openEmbedded } from '../../run/embedded.ts'
import { openStrategy } from '../../run/open-strategy.ts'
import type { Strategy } from '../../run/pipeline.ts'
import { nextRunFolder } from '../../run/run-folder.ts'
import { rendererOf, type Trained, train } from '../../run/train.ts'
import type { Command, Invocation } from '../command.ts'
import { conversationLines } from '../conversation.ts'
import { openTrainingDisplay } from '../training-display.ts'

/** The main job on the embedded default. */
export const demoCommand: Command = {
  name: 'demo',
  summary: 'Watch the policy inside act at a service desk, learn from it, and get better',
  usage: '',
  about:
    'Rolls the embedded policy at a service desk, trains it with GRPO on its own trajectories and\n' +
    'evaluates it before and after on 512 held-out tasks at temperature 1. Needs no GPU, key or\n' +
    'download. Leaves a run folder with every trajectory.',
  examples: ['espalier demo', 'espalier demo --seed 3 --json'],
  settings: ['seed', 'steps', 'strategy', 'leaves', 'learningRate', 'out'],
  isCommon: true,
  words: [0, 0],
  run: runDemo,
}

const heldOut = 512
const tasksPerStep = 32
const defaultSteps = 100

async function runDemo(invocation: Invocation): Promise<number> {
  const { terminal, signal, json, flags } = invocation
  const {
    seed = 1,
    steps = defaultSteps,
    strategy = 'chain',
    leaves = 4,
    learningRate = 6e-4,
  } = flags
  const out = flags.out ?? (await nextRunFolder())
  await using policy = await openEmbedded()
  const rolling = await openStrategy(
    { strategy, branch: undefined, leaves, stepHistory: 3, topLogprobs: 0 },
    { environment: desk() as Environment, renderer: rendererOf(policy) },
  )
  terminal.tell(
    `A policy of ${parameters(policy.model.shape)} parameters serves a desk: ${steps} steps of ${tasksPerStep} tasks, 8 attempts each.`,
  )
  const trained = await train(rolling.environment, steps * tasksPerStep, {
    policy,
    strategy: rolling.strategy as Strategy,
    group: strategy === 'tree' ? 2 : 8,
    steps,
    tasksPerStep,
    learningRate: { kind: 'linear', from: learningRate, to: learningRate / 6, steps },
    // Explores at first; what is left of it fades while the policy settles.
    entropy: { kind: 'linear', from: 0.015, to: 0, steps: 60 },
    lossOptions: { low: 0.2, high: 0.28 },
    heldOut,
    limits: { turns: 10, tokens: 160, newTokens: 24 },
    seed,
    signal,
    out,
    record: { seed, steps, strategy },
    ...openTrainingDisplay(terminal, steps),
  })
  tellBeforeAndAfter(trained, invocation)
  terminal.tell(`next  espalier show ${out}    espalier export ${out} --to jsonl --out rows.jsonl`)
  const { successBefore, successAfter, seconds, sampledTokens } = trained
  const result = { successBefore, successAfter, seconds, steps, sampledTokens, run: out }
  if (json) terminal.print(JSON.stringify(result))
  else {
    terminal.print(
      `success on ${heldOut} held-out tasks: ${successBefore.toFixed(3)} before, ${successAfter.toFixed(3)} after, in ${seconds.toFixed(0)} s`,
    )
  }
  return 0
}

/** One task that failed before and was solved after, as conversations. */
function tellBeforeAndAfter({ training }: Trained, { terminal, json }: Invocation): void {
  if (json) return
  const later = new Map(training.after.attempts.map(attempt => [attempt.task, attempt]))
  const first = training.before.attempts.find(
    ({ task, isSolved }) => !isSolved && later.get(task)?.isSolved,
  )
  if (!first) return
  for (const [title, attempt] of [
    ['before', first],
    ['after', later.get(first.task)!],
  ] as const) {
    terminal.print(terminal.paint('bold', `${title}: reward ${attempt.reward.total}`))
    for (const line of conversationLines(attempt.trajectory.messages, terminal))
      terminal.print(`  ${line}`)
  }
}

function parameters(shape: {
  vocabulary: number
  width: number
  layers: number
  hidden: number
}): string {
  const { vocabulary, width, layers, hidden } = shape
  const count = vocabulary * width + layers * (4 * width * width + 3 * width * hidden)
  return `${Math.round(count / 1000)},000`
}
