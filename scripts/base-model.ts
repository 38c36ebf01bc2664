// Makes the embedded base model from source and seed: `npm run base-model [DIR]`.
// The plain kernel and one seed give the same bytes on every Node.
import { makeLanes } from '../src/base/core/lane.ts'
import { random, randomAt, seedOf } from '../src/base/math/random.ts'
import { desk } from '../src/engine/environments/desk/desk.ts'
import type { Decision } from '../src/engine/environments/desk/rules.ts'
import { type DeskTask, hintOf } from '../src/engine/environments/desk/task.ts'
import { type Player, playWorld } from '../src/engine/environments/play.ts'
import { teachModel } from '../src/learn/model/teach.ts'
import type { Conversation } from '../src/run/demonstrations/conversation.ts'
import { mistakenWords } from '../src/run/demonstrations/demonstrations.ts'
import { chanceDecision, deskPlayer, novicePlayer } from '../test/desk-players.ts'

const seed = 6
const [folder = 'base-model', count = '14000', epochs = '6', rate = '3e-3'] = process.argv.slice(2)

const environment = desk()
/** One in eight follows a hint, so that the model knows what a hint is for. */
const hinted = 0.125

const { signal } = new AbortController()
const lanes = makeLanes({ policy: 1, tools: 1, environment: 1, reward: 1 })
const novice = novicePlayer(seed)

/** A random decision that a hint announces. */
function hintedDecision(data: DeskTask): Decision {
  const { kind, order: id } = data.requests[0]!
  const { status, age, stock } = data.orders.find(order => order.id === id)!
  const draw = random(seedOf(seed, 'hint', JSON.stringify(data)))
  return chanceDecision(kind, [status, age, stock], draw)
}

async function converse(data: DeskTask, index: number): Promise<Conversation> {
  const task = { id: `${index}` as never, data }
  const isHinted = randomAt(seedOf(seed, 'hinted'), index) < hinted
  const decision = isHinted ? hintedDecision(data) : undefined
  const player: Player<DeskTask> = decision ? deskPlayer(() => decision) : novice
  await using world = await environment.open(task, { signal, seed, lanes })
  const { messages } = await playWorld(world, task, { player, turns: 16, signal })
  const hint = decision ? [{ role: 'system', content: hintOf(decision) } as const] : []
  return { messages: [...hint, ...messages], tools: world.tools }
}

/** Words of condensed blocks and of recalling them, which the desk itself never says. */
function blockWords(): readonly string[] {
  const numbers = Array.from({ length: 100 }, (_, number) => number)
  return numbers.map(
    number => `<block_${number}>\n</block_${number}> recall:blocks [recall(blocks=${number})]`,
  )
}

const tasks = environment.makeTasks!({ count: Number(count), seed })
const conversations: Conversation[] = []
for (const [index, { data }] of tasks.entries()) conversations.push(await converse(data, index))
const started = performance.now()
const model = await teachModel(conversations, {
  seed,
  kernel: 'plain',
  epochs: Number(epochs),
  batch: 32,
  learningRate: Number(rate),
  texts: [...blockWords(), ...(await mistakenWords(environment, tasks[0]!, signal))],
  onStep: ({ step, steps, loss }) => {
    if (step % 100 !== 0 && step + 1 !== steps) return
    const seconds = Math.round((performance.now() - started) / 1000)
    console.error(`step ${step + 1}/${steps}  loss ${loss.toFixed(4)}  ${seconds} s`)
  },
})
await model.save(folder)
await model[Symbol.asyncDispose]()
