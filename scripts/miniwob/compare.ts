// npx tsx scripts/miniwob/compare.ts ROOT: plays what BrowserGym played in MiniWoB++ (test/fixtures/miniwob.jsonl,
// made by record.py beside this file) in web:miniwob, and compares what is asked, and how each action leaves the episode.
import { readFileSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import type { TaskId } from '../../src/base/core/ids.ts'
import { miniwob } from '../../src/worlds/web/miniwob.ts'
import { openForHand } from '../../test/by-hand.ts'

interface Step {
  readonly tool: 'click' | 'type' | 'select'
  readonly role: string
  readonly name: string | null
  readonly nth: number
  readonly text?: string
  readonly done: boolean
  readonly reward: number
  readonly reason: string | null
}

interface Recorded {
  readonly page: string
  readonly seed: number
  readonly goal: string
  readonly steps: readonly Step[]
}

const [root] = process.argv.slice(2)
if (root === undefined) throw new Error('ROOT: the folder html of the Python package miniwob')
const file = new URL('../../test/fixtures/miniwob.jsonl', import.meta.url)
const lines = readFileSync(file, 'utf8').trim().split('\n')
const environment = miniwob({ root })
let different = 0
for (const line of lines) {
  const recorded = JSON.parse(line) as Recorded
  const problem = await play(recorded)
  if (problem) different++
  console.log(
    `${problem ? 'DIFFERS' : 'same'}  ${recorded.page} ${recorded.seed}  ${problem ?? ''}`,
  )
}
await environment[Symbol.asyncDispose]?.()
console.log(`${lines.length - different} of ${lines.length} episodes are the same`)
process.exitCode = different === 0 ? 0 : 1

/** Plays one episode; says what differs first. */
async function play({ page, seed, goal, steps }: Recorded): Promise<string | undefined> {
  const task = { id: page as TaskId, data: { page, seed } }
  await using world = await openForHand(environment, task)
  if (!world.text.startsWith(`${goal}\n\n`))
    return `asked ${world.text.split('\n\n')[0]}, not ${goal}`
  for (const { tool, role, name, nth, text, ...then } of steps) {
    const ref = world.find(role, name ?? undefined, nth)
    const more = tool === 'type' ? { text } : tool === 'select' ? { option: text } : {}
    await world.call(tool, { ref, ...more })
    const wanted = { done: then.done, reward: then.reward, reason: then.reason }
    const { done, reward, reason } = world.isOver
      ? ((await world.report()) as { site: Omit<Step, 'tool'> }).site
      : { done: false, reward: 0, reason: null }
    if (!isDeepStrictEqual({ done, reward, reason }, wanted))
      return `${tool} ${role} ${name} left ${JSON.stringify({ done, reward, reason })}, not ${JSON.stringify(wanted)}`
  }
  return undefined
}
