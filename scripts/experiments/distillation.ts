import { appendFileSync, existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { makeLanes } from '../../src/base/core/lane.ts'
import { desk } from '../../src/engine/environments/desk/desk.ts'
import { demonstrateDesk } from '../../src/engine/environments/desk/players.ts'
import { playWorld } from '../../src/engine/environments/play.ts'
import { baseModel } from '../../src/learn/model/embedded.ts'
import { openModel } from '../../src/learn/model/model.ts'
import { conversationRow, trainSupervised } from '../../src/learn/model/supervised.ts'
import { rendererFor } from '../../src/learn/model/teach.ts'
import type { Conversation } from '../../src/run/demonstrations/conversation.ts'
import { type Arm, type Budget, type Measured, measureArm } from './arm.ts'
import { cell } from './table.ts'

const folder = 'runs/experiments'
/** Four times the parameters of the base model, taught from correct demonstrations. */
const shape = { width: 96, layers: 4, heads: 4, hidden: 256, context: 1024 }

const arms: readonly Arm[] = [
  { name: 'grpo', about: 'rewards, compared within groups of 8' },
  { name: 'distill alone', about: "the teacher's log-probabilities, no reward", distill: 'alone' },
  { name: 'distill added', about: 'both', distill: 'added' },
]

/** On-policy distillation from a larger teacher against GRPO, at equal sampled tokens. */
export async function distillation(options: {
  readonly seeds?: number
  readonly tokens?: number
  readonly model?: string
  readonly only?: readonly string[]
}): Promise<void> {
  const { seeds = 3, tokens = 20_000, model = baseModel, only } = options
  mkdirSync(folder, { recursive: true })
  const budget: Budget = {
    tokens,
    heldOut: 256,
    evaluations: 4,
    model,
    teacher: await teacher(model),
  }
  const measured: Measured[] = []
  for (let seed = 1; seed <= seeds; seed++) {
    for (const arm of arms) {
      if (only && !only.includes(arm.name)) continue
      const run = await measureArm(arm, seed, budget)
      measured.push(run)
      appendFileSync(join(folder, `distillation-${tokens}.jsonl`), `${JSON.stringify(run)}\n`)
      const rewards = run.curve.map(({ reward }) => reward.toFixed(3)).join(' → ')
      console.error(`${arm.name} seed ${seed}: ${rewards} in ${run.tokens} sampled tokens`)
    }
  }
  console.log(`| arm | reward before | after ${tokens.toLocaleString('en')} sampled tokens |`)
  console.log('|---|---|---|')
  for (const { name, about } of arms) {
    const own = measured.filter(({ arm }) => arm === name)
    if (own.length === 0) continue
    const at = (index: number) => cell(own.map(({ curve }) => curve.at(index)!.reward))
    console.log(`| ${name} (${about}) | ${at(0)} | ${at(-1)} |`)
  }
}

/** A larger model with the words of the student, made once. */
async function teacher(student: string): Promise<string> {
  const out = join(folder, 'distillation-teacher')
  if (existsSync(out)) return out
  await using small = await openModel({ folder: student }, { threads: 1 })
  const renderer = rendererFor('teacher', small.files)
  const environment = desk()
  const { signal } = new AbortController()
  const lanes = makeLanes({ policy: 1, tools: 1, environment: 1, reward: 1 })
  const conversations: Conversation[] = []
  for (const task of environment.makeTasks!({ count: 2000, seed: 77 })) {
    await using world = await environment.open(task, { signal, seed: 1, lanes })
    const { messages } = await playWorld(world, task, {
      player: demonstrateDesk,
      turns: 16,
      signal,
    })
    conversations.push({ messages, tools: world.tools })
  }
  const sizes = { ...shape, vocabulary: renderer.vocabulary }
  await using large = await openModel({ shape: sizes, seed: 1, files: small.files }, { threads: 2 })
  const rows = conversations.map(each => conversationRow(renderer, each))
  await trainSupervised(large, rows, {
    seed: 1,
    epochs: 3,
    batch: 32,
    learningRate: 2e-3,
    onStep: ({ step, steps, loss }) => {
      if (step % 50 === 0) console.error(`teacher: step ${step}/${steps}, loss ${loss.toFixed(3)}`)
    },
  })
  await large.save(out)
  return out
}
