import type { Task } from '../../base/core/environment.ts'
import { type Group, isUseful } from '../../base/core/group.ts'
import { elsewhere } from '../../engine/environments/elsewhere.ts'
import type { Fed, OpenFeed } from '../../learn/learn/steps/feed.ts'
import { ageOfGroup } from '../../learn/learn/steps/staleness.ts'
import { type Trained, trainOn } from '../../learn/learn/train.ts'
import type { TrainOptions } from '../../learn/learn/train-options.ts'
import { makeWeightsGate } from '../../run/run/pause.ts'
import type { RollParts } from '../../run/run/roll-groups.ts'
import { tasksById } from '../../run/tasks/tasks-by-id.ts'
import { openNames } from './attempt-record.ts'
import { type AgentsOptions, taskAgain } from './listen.ts'
import { openGateway } from './open-gateway.ts'
import { serveGateway } from './server.ts'

/** How a policy learns from agents that run elsewhere. */
export interface TrainAgentsOptions extends TrainOptions, AgentsOptions {
  /** Called with the address once agents can come. */
  readonly onListening?: (url: string) => void
}

/**
 * Trains a policy on agents in any language: they open attempts and close them with rewards, their
 * groups make steps, and the new weights answer at the same address. An attempt goes on while a step is
 * taken, so training data may be a step old even if less is asked for.
 */
export async function trainOnAgents(options: TrainAgentsOptions): Promise<Trained> {
  const { environment = elsewhere, tasks, maxStaleness = 0, config, ...rest } = options
  const named = typeof environment === 'string' ? { environment } : { environment: undefined }
  return await trainOn(environment, tasks, {
    ...rest,
    threads: 1,
    maxStaleness: Math.max(1, maxStaleness),
    config: { ...config, ...named, gateway: true },
    feed: agentsFeed(options),
  })
}

function agentsFeed(options: TrainAgentsOptions): OpenFeed {
  return async (parts, { tasksPerStep, onUpdate, history, maxStaleness }) => {
    const gate = makeWeightsGate(onUpdate)
    const instruments = [gate.instrument, ...(parts.instruments ?? [])]
    const groups = openQueue<Group>(parts.signal)
    const gateway = await openAgents({ ...parts, instruments }, { options, onGroup: groups.give })
    return {
      change: gate.change,
      async take(): Promise<Fed> {
        const taken: Group[] = []
        const refused: Group[] = []
        const stale: Group[] = []
        while (taken.length < tasksPerStep) {
          const group = await groups.take()
          const isOld = ageOfGroup(group, history) > maxStaleness
          if (isOld) stale.push(group)
          if (isOld || !isUseful(group)) refused.push(group)
          else taken.push(group)
        }
        return { groups: taken, refused, stale }
      },
      [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose](),
    }
  }
}

interface Opening {
  readonly options: TrainAgentsOptions
  readonly onGroup: (group: Group) => void
}

/** Opens the gateway of a training run and listens; attempts that an earlier sitting left are gathered first. */
async function openAgents(
  parts: RollParts,
  { options, onGroup }: Opening,
): Promise<AsyncDisposable> {
  const {
    tasks,
    out,
    port,
    host,
    secrets,
    attempts: most,
    idleSeconds,
    graceSeconds = 10,
  } = options
  const { seed = 0, split, environment } = parts
  const byId = await tasksById(environment, tasks, { seed, ...(split !== undefined && { split }) })
  const isKnown = (task: Task): boolean => byId.get(task.id) === task
  const record = out === undefined ? undefined : await openNames(out, { ...parts, isKnown })
  const gateway = openGateway({
    parts,
    tasks: byId,
    onGroup,
    ...(record && { record }),
    ...(secrets && { secrets }),
    ...(most !== undefined && { most }),
    ...(idleSeconds !== undefined && { idleSeconds }),
  })
  try {
    const left = parts.known?.values() ?? []
    await gateway.attempts.adopt(
      left,
      tree => record?.taskOf(tree) ?? taskAgain(gateway, tree.task),
    )
    const address = { ...(port !== undefined && { port }), ...(host !== undefined && { host }) }
    const server = await serveGateway(gateway, address)
    options.onListening?.(server.url)
    return {
      async [Symbol.asyncDispose]() {
        await gateway.attempts.drain(graceSeconds)
        await server[Symbol.asyncDispose]()
        await gateway[Symbol.asyncDispose]()
      },
    }
  } catch (error) {
    await gateway[Symbol.asyncDispose]()
    throw error
  }
}

/** Things that come and are waited for, until the signal aborts. */
function openQueue<Item>(signal: AbortSignal = new AbortController().signal) {
  const items: Item[] = []
  let wake = (): void => {}
  signal.addEventListener('abort', () => wake())
  return {
    give(item: Item): void {
      items.push(item)
      wake()
    },
    async take(): Promise<Item> {
      for (;;) {
        signal.throwIfAborted()
        const item = items.shift()
        if (item !== undefined) return item
        await new Promise<void>(resolve => {
          wake = resolve
        })
      }
    },
  }
}
