import { describe, expect, it } from 'vitest'
import { makeLanes } from '../../../base/core/lane.ts'
import { playWorld } from '../play.ts'
import { replyOf } from '../reply.ts'
import { type SmallTalk, smallTalk, smallTalks } from './small-talk.ts'

const lanes = makeLanes({ policy: 1, tools: 1, environment: 1, reward: 1 })
const { signal } = new AbortController()

async function play(name: SmallTalk, data: unknown, lines: readonly string[]) {
  const environment = smallTalk(name)
  const task = { id: 'a' as never, data: environment.readTask(data) }
  await using world = await environment.open(task, { signal, seed: 1, lanes })
  const said = [...lines]
  const player = () => (said.length > 0 ? replyOf(said.shift()!) : undefined)
  const { messages } = await playWorld(world, task, { player, turns: 9, signal })
  return {
    heard: messages
      .filter(({ role }) => role === 'user')
      .slice(1)
      .map(({ content }) => content),
    isSolved: await world.report!(),
    left: said.length,
  }
}

const sum = { first: 14, steps: [22, -5] }

describe.each([
  ['calc2', sum, ['14+22', '36 - 5', 'Answer: 31'], ['= 36', '= 31'], true],
  ['calc2', sum, ['Answer: 31'], [], false],
  ['calc2', sum, ['14+22', 'answer 36'], ['= 36'], false],
  ['calc2', sum, ['The sum is large'], [], false],
  ['calc2', sum, ['1+1', '1+1', '1+1', '1+1', 'Answer: 31'], ['= 2', '= 2', '= 2'], false],
  ['signs', { first: 40, steps: [-3] }, ['40-3', 'Answer: 37.'], ['= 37'], true],
  ['guess', { secret: 5 }, ['4', 'six? no 6', '5'], ['higher', 'lower'], true],
  ['guess', { secret: 5 }, ['a lot', '9', '1', '5'], ['Answer with one number.', 'lower'], false],
  [
    'cheaper',
    { prices: { lamp: 34, fan: 9 } },
    ['lamp', 'fan', 'Answer: fan'],
    ['= 34', '= 9'],
    true,
  ],
  ['cheaper', { prices: { lamp: 34, fan: 9 } }, ['lamp', 'Answer: fan'], ['= 34'], false],
] as const)('%s', (name, data, lines, heard, isSolved) => {
  it(`answers ${lines.join(' | ')}`, async () => {
    expect(await play(name, data, lines)).toMatchObject({ heard, isSolved })
  })
})

it.each(smallTalks)('%s makes tasks in its range, and shows how it is done', async name => {
  const environment = smallTalk(name)
  const tasks = environment.makeTasks!({ count: 50, seed: 1 })
  for (const { data } of tasks) expect(environment.readTask(data)).toEqual(data)
  expect(new Set(tasks.map(({ data }) => JSON.stringify(data))).size).toBeGreaterThan(6)
  expect(environment.demonstrations!.every(each => each.at(-1)!.role === 'assistant')).toBe(true)
})
