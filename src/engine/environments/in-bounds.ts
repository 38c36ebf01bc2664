import type { Environment, World } from '../../base/core/environment.ts'
import { type Bounds, disposeInTime, inTime } from '../../base/core/process/deadline.ts'
import type { RewardPart } from '../../base/core/reward.ts'

/** An environment in which opening, a step, a report, a fork, a reward and disposing end in time. */
export function inBounds<Data>(environment: Environment<Data>, bounds: Bounds): Environment<Data> {
  const { name, reward, drivesItself, seats } = environment
  const parts = Object.entries(reward).map(([part, given]) => [part, partIn(bounds, part, given)])
  return {
    name,
    readTask: data => environment.readTask(data),
    open: (task, call) => worldIn(bounds, 'opening a world', () => environment.open(task, call)),
    reward: Object.fromEntries(parts),
    ...(drivesItself && { drivesItself }),
    ...(seats && { seats }),
  }
}

/** A world that opens in time; one that comes too late is disposed of. */
async function worldIn(bounds: Bounds, what: string, open: () => Promise<World>): Promise<World> {
  let opening: Promise<World> | undefined
  const begin = (): Promise<World> => {
    opening = open()
    return opening
  }
  try {
    return bounded(await inTime(what, bounds, begin), bounds)
  } catch (cause) {
    void opening?.then(late => late[Symbol.asyncDispose]()).then(undefined, () => {})
    throw cause
  }
}

function bounded(world: World, bounds: Bounds): World {
  const { opening, spent, tools } = world
  return {
    opening,
    tools,
    ...(spent !== undefined && { spent }),
    step: (action, call) => inTime('a step', bounds, () => world.step(action, call)),
    ...(world.report && { report: () => inTime('the report', bounds, () => world.report!()) }),
    ...(world.fork && { fork: call => worldIn(bounds, 'a fork', () => world.fork!(call)) }),
    ...(world.forkAt && {
      forkAt: (turns, call) => worldIn(bounds, 'a fork', () => world.forkAt!(turns, call)),
    }),
    [Symbol.asyncDispose]: () => disposeInTime('a world', world, bounds.seconds),
  }
}

function partIn<Data>(bounds: Bounds, name: string, part: RewardPart<Data>): RewardPart<Data> {
  const { weight, score } = typeof part === 'function' ? { weight: 1, score: part } : part
  return {
    weight,
    score: (input, call) => inTime(`reward part "${name}"`, bounds, () => score(input, call)),
  }
}
