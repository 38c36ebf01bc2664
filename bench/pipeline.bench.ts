import { singleTurn } from '../src/engine/environments/built-in/single-turn.ts'
import { openSglang } from '../src/engine/policies/servers/sglang.ts'
import { makeEstimate } from '../src/engine/weigh/estimate.ts'
import { type RollParts, rollGroups } from '../src/run/run/roll-groups.ts'
import { byteModel, openRenderer } from '../src/run/settings/model-source.ts'
import type { Answer, Asked } from '../test/servers/serving.ts'
import { openSglangServer } from '../test/servers/sglang.ts'

const tasks = 160
const group = 8
const concurrency = 64
const shortest = 8
const slowness = 20
const oneIn = 20
/** Milliseconds per token. */
const pace = 4

/** The result of one way of rolling. */
interface Figures {
  readonly seconds: number
  readonly rolloutsPerSecond: number
  /** Share of the places that were at work, on average. */
  readonly utilisation: number
}

/** Rollouts per second against a long-tailed server: groups as they come, and batch after batch. */
export async function bench({ json }: { json: boolean }): Promise<object> {
  const renderer = await openRenderer(byteModel)
  const end = renderer.stopIds[0]!
  await using server = await openSglangServer({
    answer: asked => answerTo(asked, end),
    pace,
    remember: false,
  })
  const policy = openSglang(server.url)
  const parts: RollParts = {
    environment: singleTurn(),
    reward: { one: () => 1 },
    policy,
    renderer,
    estimate: makeEstimate('grpo'),
    group,
    concurrency,
  }
  try {
    await roll(parts, 16, 16)
    const pipeline = await roll(parts, tasks, tasks)
    const lockStep = await roll(parts, tasks, concurrency / group)
    const ratio = pipeline.rolloutsPerSecond / lockStep.rolloutsPerSecond
    if (!json) {
      console.log(`as they come      ${show(pipeline)}`)
      console.log(`batch after batch ${show(lockStep)}`)
      console.log(`ratio ${ratio.toFixed(2)}`)
    }
    return { pipeline, lockStep, ratio }
  } finally {
    await policy[Symbol.asyncDispose]()
  }
}

/** One answer in twenty has twenty times as many tokens; which one depends on the seed alone. */
function answerTo({ seed = 0 }: Asked, end: number): Answer {
  const length = seed % oneIn === 0 ? shortest * slowness : shortest
  const ids = Array.from({ length }, (_, at) => (at === length - 1 ? end : 65 + (at % 26)))
  return { ids, logprobs: ids.map(() => -1), finish: 'stop' }
}

/** Rolls all tasks, `batch` of them at a time; the next batch begins when the last one is complete. */
async function roll(parts: RollParts, count: number, batch: number): Promise<Figures> {
  const started = performance.now()
  let sampled = 0
  for (let from = 0; from < count; from += batch) {
    const some = Array.from({ length: Math.min(batch, count - from) }, (_, index) => ({
      id: from + index,
      prompt: `task ${from + index}`,
      answer: 'x',
    }))
    for await (const { members } of rollGroups(some, parts)) {
      for (const { trajectory } of members) sampled += trajectory.usage.sampled
    }
  }
  const seconds = (performance.now() - started) / 1000
  const busy = (sampled * pace) / 1000 / (seconds * concurrency)
  return { seconds, rolloutsPerSecond: (count * group) / seconds, utilisation: busy }
}

function show({ seconds, rolloutsPerSecond, utilisation }: Figures): string {
  return `${seconds.toFixed(2)} s, ${Math.round(rolloutsPerSecond)} rollouts/s, ${Math.round(utilisation * 100)} % of the places at work`
}
